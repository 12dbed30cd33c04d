/* The commands of load.c; see there. */

#define PATIENCE (2 * SECOND) /* for the end of a publication */

static void pass(double seconds) {
  uint64_t end = now() + (uint64_t)(seconds * SECOND), t;
  while ((t = now()) < end) turn((end - t) / 1000000 + 1);
}

static void do_connect(int wanted) {
  int before = alive, failed_before = failed, target = count + wanted, last = -1;
  double cpu_before = server_cpu(), kib_before = server_kib();
  uint64_t start = now(), progress = start, end;
  if (target > MAX_CONNECTIONS) target = MAX_CONNECTIONS;
  while (count < target || opening) {
    while (count < target && opening < in_flight) open_connection(&all[count++]);
    turn(100);
    if (alive + failed != last) {
      last = alive + failed;
      progress = now();
    }
    if (now() - progress > 15 * SECOND) break;
  }
  end = now();
  double cpu_used = server_cpu() - cpu_before;
  pass(0.3);
  int opened = alive - before, stuck = opening;
  printf("{\"opened\":%d,\"failed\":%d,\"connections_per_s\":%.1f,\"cpu_us_per_connection\":%.1f,"
         "\"kib_before\":%.0f,\"kib\":%.0f,\"seconds\":%.3f}\n",
         opened, failed - failed_before + stuck, opened / ((end - start) / 1e9),
         opened ? cpu_used * 1e6 / opened : 0, kib_before, server_kib(), (end - start) / 1e9);
}

static void do_close(void) {
  int was = lost_connections;
  for (int i = 0; i < count; i++) drop(&all[i]);
  count = alive = 0;
  lost_connections = was;
  printf("{}\n");
}

static void do_idle(double seconds) {
  double used = server_cpu();
  uint64_t start = now();
  pass(seconds);
  printf("{\"cpu\":%.5f,\"kib\":%.0f,\"connections\":%d}\n",
         (server_cpu() - used) / ((now() - start) / 1e9), server_kib(), alive);
}

static void do_say(int modulo, const char *text) {
  uint64_t end = now() + 10 * SECOND;
  int said = 0;
  answered = 0;
  doing = SAYING;
  for (int i = 0; i < count; i++)
    if (all[i].state == READY) {
      say(&all[i], text, number++, i % modulo, now());
      said++;
      turn(0);
    }
  while (answered < (uint64_t)said && now() < end) turn(10);
  doing = LISTED;
  printf("{\"said\":%d,\"answered\":%llu}\n", said, (unsigned long long)answered);
}

static void publish(uint64_t time) {
  say(&publisher, publication, number++, published % modulus, time);
  published++;
}

static int outstanding(void) { return delivered < (uint64_t)(published * expect + 0.5); }

/* Returns how many deliveries were missing and are written off. */
static double drain(double seconds) {
  uint64_t end = now() + (uint64_t)(seconds * SECOND);
  while (outstanding() && now() < end) turn(10);
  double missing = outstanding() ? published * expect - delivered : 0;
  published = delivered = 0;
  return missing;
}

static void do_publication(double deliveries, int modulo, const char *text) {
  double missing = drain(10);
  if (publisher.state != READY) {
    uint64_t end = now() + 5 * SECOND;
    open_connection(&publisher);
    while (publisher.state != READY && publisher.state != DEAD && now() < end) turn(10);
  }
  expect = deliveries;
  modulus = modulo;
  snprintf(publication, sizeof publication, "%s", text);
  printf("{\"ready\":%d,\"missing\":%.0f}\n", publisher.state == READY, missing);
}

/* One measured window: window > 0 closed loop, rate > 0 open loop. A closed loop is measured from
 * the end of one publication to the end of another: a slow server delivers in large lumps. */
static void do_publish(int window, double rate, double warm, double seconds) {
  uint64_t start = now(), begin = start + (uint64_t)(warm * SECOND), length = (uint64_t)(seconds * SECOND);
  uint64_t next = start, every = rate > 0 ? (uint64_t)(SECOND / rate) : 0, t, progress = start, last = delivered;
  uint64_t delivered0 = 0, frames0 = 0, published0 = 0, made = 0, lost = 0, complete = delivered / expect;
  double server0 = 0, own0 = 0;
  int measuring = 0;
  forget_samples();
  from_ts = rate > 0 ? begin : start;
  to_ts = rate > 0 ? begin + length : ~0ull;
  while (publisher.state == READY) {
    int at_end = every || (uint64_t)(delivered / expect) != complete;
    complete = delivered / expect;
    t = now();
    if (!measuring && t >= begin && (at_end || t >= begin + PATIENCE)) {
      measuring = 1;
      begin = t;
      if (!rate) forget_samples();
      delivered0 = delivered, frames0 = frames, published0 = published;
      server0 = server_cpu(), own0 = cpu(CLOCK_PROCESS_CPUTIME_ID);
    } else if (measuring && t >= begin + length && (at_end || t >= begin + length + PATIENCE)) break;
    int wait = 1;
    if (every) {
      for (; next <= t; next += every) {
        publish(next);
        if (next >= from_ts && next < to_ts) made++;
      }
      wait = next - t > 2000000 ? 1 : 0;
    } else {
      while (delivered + 0.5 > (published - (double)window + 1) * expect) publish(now());
      if (delivered != last) last = delivered, progress = t;
      else if (t - progress > 2 * SECOND) { /* something was lost: count it, go on */
        lost += (uint64_t)(published * expect) - delivered;
        delivered0 += (uint64_t)(published * expect) - delivered;
        last = delivered = (uint64_t)(published * expect), progress = t;
      }
    }
    turn(wait);
  }
  double took = (now() - begin) / 1e9, server = server_cpu() - server0, own = cpu(CLOCK_PROCESS_CPUTIME_ID) - own0;
  double got = delivered - delivered0;
  printf("{\"deliveries_per_s\":%.1f,\"frames_per_s\":%.1f,\"publications_per_s\":%.1f,"
         "\"cpu_us_per_delivery\":%.4f,\"deliveries_per_frame\":%.2f,\"server_cpu\":%.3f,\"loader_cpu\":%.3f,\"seconds\":%.3f,",
         got / took, (frames - frames0) / took, (published - published0) / took,
         got > 0 ? server * 1e6 / got : 0, frames > frames0 ? got / (frames - frames0) : 0, server / took, own / took, took);
  if (rate > 0) {
    uint64_t give_up = now() + 5 * SECOND;
    while (samples < (uint64_t)(made * expect) && now() < give_up) turn(1);
    lost = made * expect > samples ? (uint64_t)(made * expect) - samples : 0;
  }
  if (samples)
    printf("\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,", quantile_ms(.5), quantile_ms(.99), slowest / 1e6);
  printf("\"samples\":%llu,\"missing\":%llu,\"closed\":%d}\n", (unsigned long long)samples,
         (unsigned long long)lost, lost_connections);
}

static void do_echo(int repeat, double warm, double seconds, const char *text) {
  uint64_t start = now(), begin = start + (uint64_t)(warm * SECOND), end = begin + (uint64_t)(seconds * SECOND), t;
  echo_repeat = repeat;
  snprintf(echo_text, sizeof echo_text, "%s", text);
  bad_replies = answered = 0;
  forget_samples();
  from_ts = begin;
  to_ts = end;
  doing = ECHOING;
  for (int i = 0; i < count; i++)
    if (all[i].state == READY) say(&all[i], echo_text, number++, 0, now());
  while (now() < begin) turn(1);
  uint64_t answered0 = answered;
  double server0 = server_cpu();
  begin = now();
  while ((t = now()) < end) turn(1);
  double took = (t - begin) / 1e9, got = answered - answered0, server = server_cpu() - server0;
  doing = SAYING; /* the last replies are counted, and nothing is sent any more */
  pass(0.1);
  doing = LISTED;
  printf("{\"replies_per_s\":%.1f,\"cpu_us_per_reply\":%.3f,\"server_cpu\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,"
         "\"bad\":%llu,\"closed\":%d}\n",
         got / took, got > 0 ? server * 1e6 / got : 0, server / took, quantile_ms(.5), quantile_ms(.99),
         (unsigned long long)bad_replies, lost_connections);
}

static void command(char *line) {
  int whole, modulo, at = 0;
  double a, b, c;
  if (sscanf(line, "connect %d", &whole) == 1) do_connect(whole);
  else if (!strcmp(line, "close")) do_close();
  else if (sscanf(line, "idle %lf", &a) == 1) do_idle(a);
  else if (sscanf(line, "say %d %n", &modulo, &at) == 1 && at) do_say(modulo, line + at);
  else if (sscanf(line, "publication %lf %d %n", &a, &modulo, &at) == 2 && at) do_publication(a, modulo, line + at);
  else if (sscanf(line, "closed %d %lf %lf", &whole, &a, &b) == 3) do_publish(whole, 0, a, b);
  else if (sscanf(line, "open %lf %lf %lf", &a, &b, &c) == 3) do_publish(0, a, b, c);
  else if (sscanf(line, "drain %lf", &a) == 1) printf("{\"missing\":%.0f}\n", drain(a));
  else if (sscanf(line, "echo %d %lf %lf %n", &whole, &a, &b, &at) == 3 && at) do_echo(whole, a, b, line + at);
  else printf("{\"error\":\"unknown command\"}\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *name = argv[i], *value = argv[i + 1];
    if (!strcmp(name, "--port") && n_ports < MAX_SERVERS) ports[n_ports++] = atoi(value);
    else if (!strcmp(name, "--pid") && n_pids < MAX_SERVERS) pids[n_pids++] = atoi(value);
    else if (!strcmp(name, "--path")) path = value;
    else if (!strcmp(name, "--ready")) ready_after = atoi(value);
    else if (!strcmp(name, "--publisher-path")) publisher_path = value;
    else if (!strcmp(name, "--publisher-ready")) publisher_ready = atoi(value);
    else if (!strcmp(name, "--http")) http = value;
    else if (!strcmp(name, "--in-flight")) in_flight = atoi(value);
    else if (!strcmp(name, "--greet") && n_greet < MAX_TEXTS) greet[n_greet++] = value;
    else if (!strcmp(name, "--other-greet") && n_other_greet < MAX_TEXTS)
      other_greet[n_other_greet++] = value;
    else if (!strcmp(name, "--publisher-greet") && n_publisher_greet < MAX_TEXTS)
      publisher_greet[n_publisher_greet++] = value;
    else if (!strcmp(name, "--header") && n_headers < MAX_TEXTS) headers[n_headers++] = value;
    else {
      fprintf(stderr, "load: what is %s?\n", name);
      return 2;
    }
  }
  if (!n_ports) {
    fprintf(stderr, "load: --port is missing\n");
    return 2;
  }
  epoll = epoll_create1(0);
  fcntl(0, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
  for (;;) {
    char *end;
    input[input_size] = 0;
    if ((end = strchr(input, '\n'))) {
      *end = 0;
      static char line[sizeof input];
      memcpy(line, input, end + 1 - input);
      input_size -= end + 1 - input;
      memmove(input, end + 1, input_size);
      command(line);
    } else turn(1000);
  }
}
