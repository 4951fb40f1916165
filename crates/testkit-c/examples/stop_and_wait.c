// A protocol that numbers its datagrams and retransmits each one until its ACK arrives, tested on a
// link that loses packets. Compile it with:
//
//     cc -std=c99 -Iinclude examples/stop_and_wait.c -L../../target/release -ljostle_testkit
#include <stdio.h>
#include <string.h>

#include "jostle_testkit.h"

#define MS UINT64_C(1000000)
#define MESSAGES 100
#define TIMEOUT (100 * MS)
#define DATAGRAM_BYTES 1000

// Of the sender.
struct sender {
  jtk_address to;
  unsigned acknowledged;
  unsigned retransmitted;
  uint64_t retransmit_at;
  int waits;
};

static void sender_handle(void *context, uint64_t now_ns, const jtk_datagram *datagram) {
  struct sender *sender = context;
  (void)now_ns;
  if (datagram->length == 1 && datagram->payload[0] == sender->acknowledged) {
    sender->acknowledged++;
    sender->waits = 0;
  }
}

static int32_t sender_poll_transmit(void *context, uint64_t now_ns, jtk_transmit *transmit) {
  struct sender *sender = context;
  if (sender->acknowledged == MESSAGES || (sender->waits && now_ns < sender->retransmit_at)) {
    return 0;
  }
  sender->retransmitted += sender->waits;
  sender->waits = 1;
  sender->retransmit_at = now_ns + TIMEOUT;
  memset(transmit->payload, 0, DATAGRAM_BYTES);
  transmit->payload[0] = (uint8_t)sender->acknowledged;
  transmit->length = DATAGRAM_BYTES;
  transmit->destination = sender->to;
  return 1;
}

static uint64_t sender_deadline(void *context) {
  struct sender *sender = context;
  return sender->waits ? sender->retransmit_at : JTK_NEVER;
}

// Of the receiver, which acknowledges each datagram.
struct receiver {
  jtk_address to;
  uint8_t number;
  int acknowledges;
  unsigned received;
};

static void receiver_handle(void *context, uint64_t now_ns, const jtk_datagram *datagram) {
  struct receiver *receiver = context;
  (void)now_ns;
  receiver->to = datagram->source;
  receiver->number = datagram->payload[0];
  receiver->acknowledges = 1;
  receiver->received += datagram->payload[0] == receiver->received;
}

static int32_t receiver_poll_transmit(void *context, uint64_t now_ns, jtk_transmit *transmit) {
  struct receiver *receiver = context;
  (void)now_ns;
  if (!receiver->acknowledges) {
    return 0;
  }
  receiver->acknowledges = 0;
  transmit->payload[0] = receiver->number;
  transmit->length = 1;
  transmit->destination = receiver->to;
  return 1;
}

static uint64_t receiver_deadline(void *context) {
  (void)context;
  return JTK_NEVER;
}

static int32_t is_complete(void *context, uint64_t now_ns) {
  struct sender *sender = context;
  (void)now_ns;
  return sender->acknowledged == MESSAGES;
}

static int check(int32_t status, const char *call) {
  if (status != JTK_OK) {
    fprintf(stderr, "%s: %d: %s\n", call, (int)status, jtk_last_error());
  }
  return status == JTK_OK;
}

#define CHECK(call) \
  if (!check(call, #call)) return 0

static int run(uint64_t seed) {
  struct sender sender = {{4, {10, 0, 1, 1}, 7}, 0, 0, 0, 0};
  struct receiver receiver = {{0, {0}, 0}, 0, 0, 0};
  jtk_endpoint left = {sizeof left, &sender, sender_handle, sender_poll_transmit, sender_deadline,
                       NULL, NULL};
  jtk_endpoint right = {sizeof right, &receiver, receiver_handle, receiver_poll_transmit,
                        receiver_deadline, NULL, NULL};
  // 10 Mbit/s and 20 ms; 10 % of the packets are lost.
  jtk_link link = {sizeof link, 10000000, 20 * MS, 0, 0.1, 0};
  jtk_measures measures = {.size = sizeof measures};
  uint64_t simulation, now_ns;
  uint32_t host;
  CHECK(jtk_simulation_new(&link, &link, seed, &simulation));
  CHECK(jtk_add_endpoint(simulation, JTK_LEFT, "10.0.0.1:7", &left, &host));
  CHECK(jtk_add_endpoint(simulation, JTK_RIGHT, "10.0.1.1:7", &right, &host));
  CHECK(jtk_run_until(simulation, 60000 * MS, is_complete, &sender));
  CHECK(jtk_now(simulation, &now_ns));
  CHECK(jtk_get_measures(simulation, &measures));
  CHECK(jtk_simulation_free(simulation));
  printf("seed %u: %u messages in %.3f s, %u retransmitted, %u packets lost\n", (unsigned)seed,
         receiver.received, (double)now_ns / 1e9, sender.retransmitted,
         (unsigned)(measures.forward.dropped_packets + measures.reverse.dropped_packets));
  // Each lost packet costs one timeout; a message takes an RTT of 40 ms and its time on the links.
  return receiver.received == MESSAGES &&
         sender.retransmitted == measures.forward.dropped_packets + measures.reverse.dropped_packets &&
         now_ns > MESSAGES * 40 * MS && measures.forward.delay_min_ns > 20 * MS;
}

int main(void) {
  for (uint64_t seed = 0; seed < 10; seed++) {
    if (!run(seed)) {
      fprintf(stderr, "failed with seed %u\n", (unsigned)seed);
      return 1;
    }
  }
  return 0;
}
