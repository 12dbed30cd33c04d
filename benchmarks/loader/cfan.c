/* cfan: the physical limit. A WebSocket server that does nothing but fan out; one thread, epoll.
 *
 *   cc -O2 -o cfan cfan.c
 *   cfan PORT
 *
 * GET /pub is the publisher, anything else a subscriber. Every text frame of the publisher becomes
 * one frame, built once, that goes to every subscriber with one send(). No protocol, no checks, no
 * joining of messages. Ends with its parent. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FD 70000
enum { NEW, SUBSCRIBER, PUBLISHER };

static uint8_t role[MAX_FD];
static int subscribers[MAX_FD], position[MAX_FD], count;
static char in[1 << 20], out[1 << 20];
static size_t rest; /* bytes of a publisher's frame whose end has not come */

#define ROTATE(x, k) ((x) << (k) | (x) >> (32 - (k)))

/* SHA-1 of at most 119 bytes: enough for a handshake's key. */
static void sha1(const uint8_t *data, size_t size, uint8_t digest[20]) {
  uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  uint8_t block[128] = {0};
  size_t padded = ((size + 8) / 64 + 1) * 64;
  memcpy(block, data, size);
  block[size] = 0x80;
  for (int i = 0; i < 8; i++) block[padded - 1 - i] = (uint64_t)size * 8 >> (8 * i);
  for (size_t start = 0; start < padded; start += 64) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++) {
      const uint8_t *p = block + start + 4 * i;
      w[i] = (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    }
    for (int i = 16; i < 80; i++) {
      uint32_t x = w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16];
      w[i] = ROTATE(x, 1);
    }
    for (int i = 0; i < 80; i++) {
      uint32_t f, k;
      if (i < 20) f = (b & c) | (~b & d), k = 0x5A827999;
      else if (i < 40) f = b ^ c ^ d, k = 0x6ED9EBA1;
      else if (i < 60) f = (b & c) | (b & d) | (c & d), k = 0x8F1BBCDC;
      else f = b ^ c ^ d, k = 0xCA62C1D6;
      uint32_t t = ROTATE(a, 5) + f + e + k + w[i];
      e = d, d = c, c = ROTATE(b, 30), b = a, a = t;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  }
  for (int i = 0; i < 20; i++) digest[i] = h[i / 4] >> (24 - 8 * (i % 4));
}

static void base64(const uint8_t *p, int size, char *o) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int i = 0; i < size; i += 3) {
    uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < size ? p[i + 1] << 8 : 0) | (i + 2 < size ? p[i + 2] : 0);
    *o++ = letters[v >> 18];
    *o++ = letters[v >> 12 & 63];
    *o++ = i + 1 < size ? letters[v >> 6 & 63] : '=';
    *o++ = i + 2 < size ? letters[v & 63] : '=';
  }
  *o = 0;
}

static void forget(int fd) {
  if (role[fd] == SUBSCRIBER) {
    int last = subscribers[--count];
    subscribers[position[fd]] = last;
    position[last] = position[fd];
  }
  close(fd);
}

static void shake_hands(int fd, char *request) {
  char key[128], accept[40], reply[256], *found = strcasestr(request, "sec-websocket-key: ");
  uint8_t digest[20];
  int n = 0;
  if (!found) {
    forget(fd);
    return;
  }
  for (found += 19; *found != '\r' && n < 60; found++) key[n++] = *found;
  strcpy(key + n, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  sha1((uint8_t *)key, strlen(key), digest);
  base64(digest, 20, accept);
  n = sprintf(reply,
              "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Sec-WebSocket-Accept: %s\r\n\r\n",
              accept);
  role[fd] = strncmp(request, "GET /pub", 8) ? SUBSCRIBER : PUBLISHER;
  if (role[fd] == SUBSCRIBER) {
    position[fd] = count;
    subscribers[count++] = fd;
    memcpy(reply + n, "\x81\x02[]", 4); /* the subscriber's first message */
    n += 4;
  }
  send(fd, reply, n, MSG_NOSIGNAL);
}

static void fan_out(size_t size) {
  for (size_t offset = 0;;) {
    unsigned char *head = (unsigned char *)in + offset, *mask;
    size_t have = size - offset, length, skip = 2, n = 0;
    if (have >= 2 && (length = head[1] & 127) == 126 && have >= 4) length = head[2] << 8 | head[3], skip = 4;
    if (have < 4 || have < skip + 4 + length) {
      rest = have;
      memmove(in, in + offset, rest);
      return;
    }
    mask = head + skip;
    out[n++] = (char)0x81;
    if (length < 126) out[n++] = (char)length;
    else out[n++] = 126, out[n++] = (char)(length >> 8), out[n++] = (char)length;
    for (size_t i = 0; i < length; i++) out[n++] = mask[4 + i] ^ mask[i & 3];
    offset += skip + 4 + length;
    for (int i = 0; i < count; i++)
      if (send(subscribers[i], out, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EAGAIN)
        fprintf(stderr, "cfan: a frame was dropped\n");
  }
}

int main(int argc, char **argv) {
  int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 2) return 2;
  at.sin_port = htons(atoi(argv[1]));
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (void *)&at, sizeof at) || listen(listener, 4096)) return perror("cfan"), 1;
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int n = epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < n; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
          role[fd] = NEW;
          event = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
          epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        }
        continue;
      }
      static char other[4096]; /* `in` may hold a part of the publisher's frame */
      int publishes = role[fd] == PUBLISHER;
      char *into = publishes ? in + rest : other;
      ssize_t got = recv(fd, into, publishes ? sizeof in - rest : sizeof other - 1, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) forget(fd);
      if (got <= 0) continue;
      if (publishes) fan_out(rest + got);
      else if (role[fd] == NEW) other[got] = 0, shake_hands(fd, other);
    }
  }
}
