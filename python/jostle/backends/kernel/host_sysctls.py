"""Settings of hosts: routers, and the ends of flows."""

from __future__ import annotations

from jostle.run_spec import FlowSpec

__all__ = ["EVERYWHERE", "ROUTER", "end_sysctls"]

EVERYWHERE = {
    # Asymmetric routes are allowed.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    # No packets other than the flows'.
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
}
ROUTER = {**EVERYWHERE, "net.ipv4.ip_forward": "1"}


# Disable later features: larger bursts on short paths (Linux 5.18), compressed ACKs (4.18).
_AS_IN_4_15 = {"net.ipv4.tcp_tso_rtt_log": "0", "net.ipv4.tcp_comp_sack_nr": "0"}


def end_sysctls(flow: FlowSpec, received: FlowSpec) -> dict[str, str]:
    """Return the settings of a host that is an end of a flow.

    Parameters
    ----------
    flow
        The flow whose data it sends; for a host that only receives data, the flow itself.
    received
        The flow whose data it receives.
    """
    window_bytes = received["receive_window_bytes"]
    first_bytes = received["initial_receive_window_bytes"]
    # Half of a socket's memory is receive window (tcp_adv_win_scale 1). Equal default and maximum
    # disable autotuning.
    receive_bytes = min(2 * window_bytes, 2**31 - 1)
    default_bytes = 2 * first_bytes if received["receive_window_autotuning"] else receive_bytes
    # Never the limit: unsent data is limited per socket.
    source = flow["source"]
    window_bytes = flow["receive_window_bytes"]
    largest_bytes = source["buffer_bytes"] if source["kind"] == "relay" else window_bytes
    send_bytes = min(4 * max(window_bytes, largest_bytes) + (16 << 20), 2**31 - 1)
    return {
        **EVERYWHERE,
        "net.ipv4.ip_default_ttl": "255",
        "net.ipv4.tcp_rmem": f"4096 {default_bytes} {receive_bytes}",
        "net.ipv4.tcp_wmem": f"4096 {send_bytes} {send_bytes}",
        # Do not reuse metrics of previous connections.
        "net.ipv4.tcp_no_metrics_save": "1",
        "net.ipv4.tcp_ecn": "1" if flow["ecn"] else "0",
        **(_AS_IN_4_15 if flow["linux"] == "4.15" else {}),
    }
