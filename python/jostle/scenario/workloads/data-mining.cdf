# Flow sizes of a cluster that mines data: bytes, share of flows that are not larger.
# Published as a figure in Greenberg et al., "VL2: a scalable and flexible data center network", SIGCOMM
# 2009, fig. 2, and used as "data mining" in Alizadeh et al., "pFabric", SIGCOMM 2013, fig. 4b. The points
# are those of conf/VL2_CDF.txt of HKUST-SING/TrafficGenerator. Mean 12.7 MB, nearly all of it in the
# largest hundredths of the flows.
0 0
180 0.1
216 0.2
560 0.3
900 0.4
1100 0.5
1870 0.6
3160 0.7
10000 0.8
400000 0.9
3160000 0.95
100000000 0.98
1000000000 1
