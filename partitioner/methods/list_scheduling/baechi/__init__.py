"""Baechi's placers: m-TOPO, m-ETF and m-SCT, and the ETF that they go back to."""
