/* load: a WebSocket and HTTP load generator for a service on 127.0.0.1. One thread, epoll.
 *
 *   cc -O2 -o load load.c
 *   load {--port PORT --pid PID}... [--path PATH] [--greet TEXT]... [--ready N]
 *        [--publisher-path PATH] [--publisher-greet TEXT]... [--publisher-ready N]
 *        [--http PATH] [--header LINE]... [--in-flight N] [--other-greet TEXT]...
 *
 * --other-greet is sent by every second connection instead of --greet. A message {} is a ping of the
 * protocol, and answered with {}: peers greet with [] therefore.
 * It is the publisher and all subscribers at once, so it works unchanged against every server.
 * --greet is sent after the handshake; a connection is ready after --ready messages. PID is the
 * server's: its CPU time and memory are reported. With --http connections are plain keep-alive.
 * A service may be several servers: connections go to each in turn, the publisher to the first,
 * and CPU time and memory are those of all together.
 *
 * Commands come line by line on stdin, each is answered by one JSON object on stdout:
 *
 *   connect N                      open N more connections, wait until they are ready
 *   close                          close all of them
 *   idle SECONDS                   do nothing but answer pings
 *   say MODULUS TEXT               every connection sends TEXT and waits for one reply
 *   publication EXPECT MODULUS TEXT   what is published, and how many deliveries each causes
 *   closed WINDOW WARM SECONDS     publish, WINDOW publications outstanding
 *   open RATE WARM SECONDS         publish RATE a second; latency from the intended time
 *   drain SECONDS                  wait for what is outstanding
 *   echo REPEAT WARM SECONDS TEXT  every connection sends TEXT (REPEAT lines of it) when its last
 *                                  reply is there
 *
 * In texts %T is the monotonic clock in ns, %n a running number, %r the number (of the connection
 * or the publication) modulo MODULUS. A message counts as delivery if it contains "ts":%T.
 * So does one whose data is a string: of a subscription with deltas, where no time can be found.
 * Messages are the lines of a text frame. Ends at the end of stdin, and with its parent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 60000
#define BUFFER (1 << 20)
#define SECOND 1000000000ull
#define MAX_TEXTS 8
#define MAX_SERVERS 8

enum state { FREE, CONNECTING, HANDSHAKE, GREETED, READY, DEAD };
enum { LISTED, ECHOING, SAYING };

struct connection {
  int fd, number;
  enum state state;
  uint32_t received;
  char *rest; /* the beginning of a frame whose end has not come */
  size_t rest_size;
  uint64_t sent_at;
};

static struct connection all[MAX_CONNECTIONS], publisher;
static int count, opening, alive, failed, lost_connections, doing, epoll, ready_after;
static int ports[MAX_SERVERS], pids[MAX_SERVERS], n_ports, n_pids;
static int publisher_ready, in_flight = 64, n_greet, n_other_greet, n_publisher_greet, n_headers,
    echo_repeat = 1;
static const char *path = "/", *publisher_path, *http, *greet[MAX_TEXTS], *other_greet[MAX_TEXTS],
    *publisher_greet[MAX_TEXTS];
static const char *headers[MAX_TEXTS];
static char echo_text[4096], publication[4096], input[8192];
static int modulus = 1;
static size_t input_size;
static double expect = 1;
static uint64_t published, delivered, frames, replies, answered, bad_replies, number = 10;
static uint64_t from_ts, to_ts, samples, slowest; /* latencies of publications made in [from, to) */
static uint32_t histogram[64 * 64];
static char buffer[BUFFER + 1];

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * SECOND + t.tv_nsec;
}

static double cpu(clockid_t clock) {
  struct timespec t;
  return clock_gettime(clock, &t) ? 0 : t.tv_sec + t.tv_nsec / 1e9;
}

static double server_cpu(void) {
  clockid_t clock;
  double used = 0;
  for (int i = 0; i < n_pids; i++)
    if (!clock_getcpuclockid(pids[i], &clock)) used += cpu(clock);
  return used;
}

static double server_kib(void) {
  double kib = 0;
  for (int i = 0; i < n_pids; i++) {
    char name[64];
    long pages = 0;
    snprintf(name, sizeof name, "/proc/%d/statm", pids[i]);
    FILE *file = fopen(name, "r");
    if (!file) continue;
    if (fscanf(file, "%*d %ld", &pages) == 1) kib += pages * (sysconf(_SC_PAGESIZE) / 1024.0);
    fclose(file);
  }
  return kib;
}

static int port_of(const struct connection *c) { return ports[c->number % n_ports]; }

/* 64 buckets for each power of two: 1.6 % wide */
static void sample(uint64_t ns) {
  int e = ns < 64 ? 5 : 63 - __builtin_clzll(ns);
  histogram[ns < 64 ? ns : (uint64_t)(((e - 5) << 6) | ((ns >> (e - 6)) & 63))]++;
  samples++;
  if (ns > slowest) slowest = ns;
}

static double quantile_ms(double q) {
  uint64_t want = samples * q, seen = 0;
  for (int i = 0; i < 64 * 64; i++)
    if ((seen += histogram[i]) > want)
      return (i < 64 ? (uint64_t)i : (1ull << ((i >> 6) + 5)) | ((uint64_t)(i & 63) << ((i >> 6) - 1))) / 1e6;
  return slowest / 1e6;
}

static void forget_samples(void) {
  memset(histogram, 0, sizeof histogram);
  samples = slowest = 0;
}

static void drop(struct connection *c) {
  if (c->state == FREE || c->state == DEAD) return;
  if (c->state == READY) {
    if (c != &publisher) alive--, lost_connections++;
  } else {
    opening--;
    failed++;
  }
  c->state = DEAD;
  close(c->fd);
  free(c->rest);
  c->rest = NULL;
  c->rest_size = 0;
}

static void put(struct connection *c, const char *data, size_t size) {
  uint64_t deadline = now() + 5 * SECOND;
  while (size) {
    ssize_t n = send(c->fd, data, size, MSG_NOSIGNAL);
    if (n > 0) {
      data += n;
      size -= n;
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR) && now() < deadline) {
      usleep(200);
    } else {
      drop(c);
      return;
    }
  }
}

static size_t fill(char *out, const char *text, uint64_t n, uint64_t remainder, uint64_t time) {
  char *start = out;
  for (; *text; text++) {
    uint64_t value;
    if (text[0] == '%' && text[1] == 'T') value = time;
    else if (text[0] == '%' && text[1] == 'n') value = n;
    else if (text[0] == '%' && text[1] == 'r') value = remainder;
    else { *out++ = *text; continue; }
    out += sprintf(out, "%llu", (unsigned long long)value);
    text++;
  }
  return out - start;
}

static void say(struct connection *c, const char *text, uint64_t n, uint64_t remainder, uint64_t time) {
  static char line[8192], out[1 << 20];
  size_t size = fill(line, text, n, remainder, time), head = 0;
  c->sent_at = time;
  if (http) {
    head = sprintf(out, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n", http, port_of(c));
    for (int i = 0; i < n_headers; i++) head += sprintf(out + head, "%s\r\n", headers[i]);
    head += sprintf(out + head, "Content-Length: %zu\r\n\r\n", (size + 1) * echo_repeat);
    for (int i = 0; i < echo_repeat && head + size + 1 < sizeof out; i++) {
      memcpy(out + head, line, size);
      head += size;
      out[head++] = '\n';
    }
    put(c, out, head);
    return;
  }
  static const unsigned char mask[4] = {0x12, 0x34, 0x56, 0x78};
  out[head++] = (char)0x81;
  if (size < 126) out[head++] = (char)(0x80 | size);
  else {
    out[head++] = (char)(0x80 | 126);
    out[head++] = (char)(size >> 8);
    out[head++] = (char)size;
  }
  memcpy(out + head, mask, 4);
  head += 4;
  for (size_t i = 0; i < size; i++) out[head + i] = line[i] ^ mask[i & 3];
  put(c, out, head + size);
}

static void open_connection(struct connection *c) {
  int one = 1;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  memset(c, 0, sizeof *c);
  c->number = c == &publisher ? 0 : c - all;
  to.sin_port = htons(port_of(c));
  c->state = CONNECTING;
  opening++;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (c->fd < 0) { drop(c); return; }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(c->fd, (void *)&to, sizeof to) && errno != EINPROGRESS) { drop(c); return; }
  struct epoll_event event = {.events = EPOLLOUT, .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

static void become_ready(struct connection *c) {
  c->state = READY;
  opening--;
  if (c != &publisher) alive++;
}

static void connected(struct connection *c) {
  char request[4096];
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
  if (http) { become_ready(c); return; }
  int n = snprintf(request, sizeof request,
                   "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                   "Origin: http://127.0.0.1:%d\r\n\r\n",
                   c == &publisher ? publisher_path : path, port_of(c), port_of(c));
  c->state = HANDSHAKE;
  put(c, request, n);
}

static void message(struct connection *c, const char *text, size_t size, uint64_t time) {
  c->received++;
  if (c == &publisher) return;
  replies++;
  const char *ts = memmem(text, size, "\"ts\":", 5), *end = text + size;
  if (!ts) {
    delivered += memmem(text, size, "\"data\":\"", 8) != NULL;
    return;
  }
  delivered++;
  uint64_t at = 0;
  for (ts += 5; ts < end && *ts == ' '; ts++) {}
  for (; ts < end && *ts >= '0' && *ts <= '9'; ts++) at = at * 10 + (*ts - '0');
  if (at >= from_ts && at < to_ts && at <= time) sample(time - at);
}

static void reply_came(struct connection *c, uint64_t time) {
  answered++;
  if (time >= from_ts && time < to_ts) sample(time - c->sent_at);
  if (doing == ECHOING) say(c, echo_text, number++, 0, time);
}

static size_t read_http(struct connection *c, size_t size, uint64_t time) {
  char *end = memmem(buffer, size, "\r\n\r\n", 4), *length, *last;
  if (!end) return 0;
  *end = 0;
  length = strcasestr(buffer, "content-length:");
  size_t total = end + 4 - buffer;
  if (length) total += strtoul(length + 15, NULL, 10);
  else if (strcasestr(buffer, "transfer-encoding: chunked")) {
    last = memmem(end + 4, size - total, "\r\n0\r\n\r\n", 7);
    total = last ? (size_t)(last + 7 - buffer) : size + 1;
  }
  if (total > size) { *end = '\r'; return 0; }
  if (strncmp(buffer + 9, "200", 3) || memmem(end + 4, buffer + total - end - 4, "\"error\"", 7)) {
    if (!bad_replies++) fprintf(stderr, "load: bad reply: %.300s\n", buffer);
  }
  reply_came(c, time);
  return total;
}

static size_t read_handshake(struct connection *c, size_t size, uint64_t time) {
  buffer[size] = 0;
  char *end = memmem(buffer, size, "\r\n\r\n", 4);
  if (!end) return 0;
  if (strncmp(buffer + 9, "101", 3)) {
    if (!failed) fprintf(stderr, "load: handshake refused: %.120s\n", buffer);
    drop(c);
    return size;
  }
  size_t used = end + 4 - buffer;
  c->state = GREETED;
  int own = c == &publisher, other = !own && n_other_greet && (c - all) % 2;
  const char **texts = own ? publisher_greet : other ? other_greet : greet;
  int n_texts = own ? n_publisher_greet : other ? n_other_greet : n_greet;
  for (int i = 0; i < n_texts && c->state == GREETED; i++)
    say(c, texts[i], c->number, c->number % modulus, time);
  if (c->state == GREETED && !(own ? publisher_ready : ready_after)) become_ready(c);
  return used;
}

/* The size of the frame at `offset`, 0 when its end has not come. */
static size_t read_frame(struct connection *c, size_t offset, size_t size, uint64_t time) {
  unsigned char *head = (unsigned char *)buffer + offset;
  size_t have = size - offset, length, skip = 2;
  if (have < 2) return 0;
  length = head[1] & 127;
  if (length == 126) {
    if (have < 4) return 0;
    length = head[2] << 8 | head[3];
    skip = 4;
  } else if (length == 127) {
    if (have < 10) return 0;
    length = 0;
    for (int i = 2; i < 10; i++) length = length << 8 | head[i];
    skip = 10;
  }
  if (have < skip + length) return 0;
  char *text = buffer + offset + skip, *end = text + length;
  int operation = head[0] & 15;
  if (operation == 8) { drop(c); return have; }
  if (operation == 9) {
    char pong[6 + 125] = {(char)0x8a, (char)(0x80 | length), 0, 0, 0, 0};
    memcpy(pong + 6, text, length);
    put(c, pong, 6 + length);
  }
  if (operation > 2) return skip + length;
  if (c->state == READY && c != &publisher) frames++;
  while (text < end) {
    char *line_end = memchr(text, '\n', end - text);
    if (!line_end) line_end = end;
    if (line_end - text == 2 && text[0] == '{' && text[1] == '}') say(c, "{}", 0, 0, c->sent_at);
    else if (line_end > text) message(c, text, line_end - text, time);
    text = line_end + 1;
  }
  if (c->state == GREETED && c->received >= (uint32_t)(c == &publisher ? publisher_ready : ready_after))
    become_ready(c);
  else if (doing != LISTED && c->state == READY && c != &publisher) reply_came(c, time);
  return skip + length;
}

static void readable(struct connection *c) {
  size_t size = c->rest_size, offset = 0, n;
  if (size) memcpy(buffer, c->rest, size);
  ssize_t got = recv(c->fd, buffer + size, BUFFER - size, 0);
  if (got <= 0) {
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) drop(c);
    return;
  }
  free(c->rest);
  c->rest = NULL;
  c->rest_size = 0;
  size += got;
  uint64_t time = now();
  if (http) offset = read_http(c, size, time);
  else {
    if (c->state == HANDSHAKE) offset = read_handshake(c, size, time);
    if (c->state == GREETED || c->state == READY)
      while (c->state != DEAD && (n = read_frame(c, offset, size, time))) offset += n;
  }
  if (c->state == DEAD || offset >= size) return;
  c->rest_size = size - offset;
  c->rest = malloc(c->rest_size);
  memcpy(c->rest, buffer + offset, c->rest_size);
}

static void turn(int timeout_ms) {
  struct epoll_event events[256];
  int n = epoll_wait(epoll, events, 256, timeout_ms);
  for (int i = 0; i < n; i++) {
    struct connection *c = events[i].data.ptr;
    if (!c) { /* stdin */
      ssize_t got = read(0, input + input_size, sizeof input - input_size - 1);
      if (got > 0) input_size += got;
      else if (got == 0) exit(0);
    } else if (c->state == CONNECTING) {
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error) drop(c);
      else connected(c);
    } else if (c->state != DEAD && c->state != FREE) readable(c);
  }
}

#include "commands.h"
