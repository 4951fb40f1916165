# Flow sizes of a cluster that answers web searches: bytes, share of flows that are not larger.
# Published as a figure in Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010, fig. 4, and used as
# "web search" in Alizadeh et al., "pFabric", SIGCOMM 2013, fig. 4a. The points are those of the two
# generators of traffic that most evaluations since then have used: conf/DCTCP_CDF.txt of
# HKUST-SING/TrafficGenerator and traffic_gen/WebSearch_distribution.txt of
# alibaba-edu/High-Precision-Congestion-Control, which agree. Mean 1.71 MB.
0 0
10000 0.15
20000 0.20
30000 0.30
50000 0.40
80000 0.53
200000 0.60
1000000 0.70
2000000 0.80
5000000 0.90
10000000 0.97
30000000 1
