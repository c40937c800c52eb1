"""A lower bound on every split that counts transfers: the covering relaxation.

Let T be the largest load of a placement, w >= 0 any weights of the supernodes, and f_k(w, T) the
largest weight that a single device of kind k can hold at a load of at most T. The devices together
hold everything, so

    sum over v of w_v  <=  sum over kinds k of  count_k f_k(w, T),

and weights that break this *refute* T: every placement has a larger load (this is the dual of the
Dantzig-Wolfe or set-covering relaxation; the linear relaxation of the integer program is weaker, as
it lets a device hold a fraction of every supernode and then cuts nothing). `states.py` and
`labels.py` compute f exactly, transfers included, by a dynamic program along the order of the
supernodes; `master.py` improves the weights; `bound.py` searches for the largest T refuted.
"""
