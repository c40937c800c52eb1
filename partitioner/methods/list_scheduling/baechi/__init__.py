"""The placers of Baechi (Jeon et al., 2020): m-TOPO, m-ETF and m-SCT; and ETF, which m-ETF extends."""
