"""Reports: a plan with its pictures and tables as one HTML file; bokeh is loaded when one is made."""
