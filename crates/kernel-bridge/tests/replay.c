/*
 * Replays recorded events through the object for the kernel, and compares every result.
 *
 * A recording on standard input is: the length of the case's name and the name, the length of its line
 * and the line, then events. An event is its number, the size of its structure, the structure, and the
 * result of the controller that was called directly. tests/replay.rs writes them. The numbers are those
 * of replay.rs.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#include "jostle_bridge.h"

enum { NEXT, DISCONNECT, OPEN, CLOSE, ECN_NEGOTIATED, ESTABLISHED, MSS_CHANGE, SEND, ACK_EVENT, RAW_ACK,
       ECN_MARKS, PACKET_LOST, CONGESTION, RECOVERY_STATE, ACK, UNDO, CWR_COMPLETE, IDLE_RESTART, WAKEUP,
       SET_CWND, SET_SSTHRESH };

/* Arguments of a call without a structure. */
struct plain {
	u64 now_ns;
	u32 value;
	u32 padding;
};

static long allocated;

void *jk_alloc(size_t size_bytes)
{
	void *memory = NULL;
	/* As kmalloc: a power of two is aligned to itself. */
	size_t align = size_bytes & (size_bytes - 1) ? 8 : size_bytes < 8 ? 8 : size_bytes;

	allocated++;
	return posix_memalign(&memory, align, size_bytes) ? NULL : memory;
}

void jk_free(void *memory)
{
	allocated--;
	free(memory);
}

void jk_panic(const char *text, size_t length)
{
	fprintf(stderr, "%.*s\n", (int)length, text);
	exit(2);
}

static void take(void *to, size_t size)
{
	if (fread(to, 1, size, stdin) != size) {
		fprintf(stderr, "the recording is truncated\n");
		exit(2);
	}
}

static u32 number(void)
{
	u32 value;

	take(&value, sizeof(value));
	return value;
}

static char *text(u32 *length)
{
	char *memory;

	*length = number();
	memory = malloc(*length + 1);
	take(memory, *length);
	memory[*length] = 0;
	return memory;
}

static int same(const struct jk_controller_state *a, const struct jk_controller_state *b)
{
	return a->pacing_bps == b->pacing_bps && a->wakeup_ns == b->wakeup_ns &&
	       a->packet_gap_ns == b->packet_gap_ns && a->cwnd == b->cwnd && a->ssthresh == b->ssthresh &&
	       a->min_burst == b->min_burst && a->max_burst == b->max_burst &&
	       a->limits_flight == b->limits_flight && a->requests_cwr == b->requests_cwr;
}

static void show(const char *who, const struct jk_controller_state *a)
{
	fprintf(stderr, "%s: cwnd %u, ssthresh %u, pacing %llu bit/s, wake-up %llu ns, gap %llu ns, burst %u to %u, "
		"limits flight %u, requests CWR %u\n", who, a->cwnd, a->ssthresh, (unsigned long long)a->pacing_bps,
		(unsigned long long)a->wakeup_ns, (unsigned long long)a->packet_gap_ns, a->min_burst, a->max_burst,
		a->limits_flight, a->requests_cwr);
}

#define SIZE(type) if (size != sizeof(type)) { \
		fprintf(stderr, "%s: event %u has %u bytes instead of %zu\n", name, event, size, sizeof(type)); \
		exit(2); \
	}

/* Replays one case; returns the number of its events. */
static u64 replay(const char *name, const char *line, u32 length)
{
	char error[200];
	struct jk_registration *registration = jk_register(line, length, error, sizeof(error));
	struct jk_connection *c;
	struct jk_cache *cache = jk_cache_create();
	u64 events = 0;

	if (!registration) {
		fprintf(stderr, "%s: %s\n", name, error);
		exit(1);
	}
	jk_properties(registration);
	c = jk_connect(registration, JK_ONLY_CONNECTION);
	for (;;) {
		union {
			struct plain plain;
			struct jk_established established;
			struct jk_send send;
			struct jk_raw_ack raw_ack;
			struct jk_marks marks;
			struct jk_lost lost;
			struct jk_congestion congestion;
			struct jk_ack ack;
		} is;
		struct jk_controller_state expected, got;
		u32 event = number(), size = number();
		u64 now;
		u32 value;

		if (event == NEXT)
			break;
		if (event == DISCONNECT) {
			jk_disconnect(c);
			c = jk_connect(registration, JK_ONLY_CONNECTION);
			continue;
		}
		if (size > sizeof(is)) {
			fprintf(stderr, "%s: event %u has %u bytes\n", name, event, size);
			exit(2);
		}
		take(&is, size);
		take(&expected, sizeof(expected));
		now = is.plain.now_ns;
		value = is.plain.value;
		memset(&got, 0xff, sizeof(got));
		switch (event) {
		case ESTABLISHED: SIZE(struct jk_established) jk_on_established(c, &is.established, &got); break;
		case SEND: SIZE(struct jk_send) jk_on_send(c, &is.send, &got); break;
		case RAW_ACK: SIZE(struct jk_raw_ack) jk_on_raw_ack(c, &is.raw_ack, &got); break;
		case ECN_MARKS: SIZE(struct jk_marks) jk_on_ecn_marks(c, &is.marks, &got); break;
		case PACKET_LOST: SIZE(struct jk_lost) jk_on_packet_lost(c, &is.lost, &got); break;
		case CONGESTION: SIZE(struct jk_congestion) jk_on_congestion(c, &is.congestion, &got); break;
		case ACK: SIZE(struct jk_ack) jk_on_ack(c, &is.ack, &got); break;
		case OPEN: SIZE(struct plain) jk_on_open(c, cache, now, value); got = expected; break;
		case CLOSE: SIZE(struct plain) jk_on_close(c, cache, now, value); got = expected; break;
		case ECN_NEGOTIATED: SIZE(struct plain) jk_on_ecn_negotiated(c, value, &got); break;
		case MSS_CHANGE: SIZE(struct plain) jk_on_mss_change(c, value, &got); break;
		case ACK_EVENT: SIZE(struct plain) jk_on_ack_event(c, now, value, &got); break;
		case RECOVERY_STATE: SIZE(struct plain) jk_on_recovery_state(c, now, value, &got); break;
		case UNDO: SIZE(struct plain) jk_on_undo(c, now, &got); break;
		case CWR_COMPLETE: SIZE(struct plain) jk_on_cwr_complete(c, now, &got); break;
		case IDLE_RESTART: SIZE(struct plain) jk_on_idle_restart(c, now, &got); break;
		case WAKEUP: SIZE(struct plain) jk_on_wakeup(c, now, &got); break;
		case SET_CWND: SIZE(struct plain) jk_set_cwnd(c, value, &got); break;
		case SET_SSTHRESH: SIZE(struct plain) jk_set_ssthresh(c, value, &got); break;
		default:
			fprintf(stderr, "%s: there is no event %u\n", name, event);
			exit(2);
		}
		events++;
		if (!same(&got, &expected)) {
			fprintf(stderr, "%s: event %llu (kind %u) differs\n", name, (unsigned long long)events, event);
			show("direct", &expected);
			show("bridge", &got);
			exit(1);
		}
	}
	jk_disconnect(c);
	jk_cache_delete(cache);
	jk_unregister(registration);
	if (allocated) {
		fprintf(stderr, "%s: %ld allocations were not freed\n", name, allocated);
		exit(1);
	}
	return events;
}

int main(void)
{
	u64 cases = 0, events = 0;
	int next;

	while ((next = getchar()) != EOF) {
		u32 name_length, length;
		char *name, *line;

		ungetc(next, stdin);
		name = text(&name_length);
		line = text(&length);
		events += replay(name, line, length);
		cases++;
		free(name);
		free(line);
	}
	printf("%llu %llu\n", (unsigned long long)cases, (unsigned long long)events);
	return 0;
}
