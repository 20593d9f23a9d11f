/*
 * What a broker could reach at most on this machine: a program that does nothing of RocketMQ but
 * what no broker can leave out.
 *
 *     limit FILE
 *
 * It listens on a free port of 127.0.0.1 and prints `limit ready HOST:PORT`. One thread, one epoll.
 * A turn takes what all readable connections have, cuts whole frames, appends the bodies of all of
 * them to FILE with one pwrite, and then answers each frame.
 *
 * A frame is: size(4), which counts what follows; mark(4), the header's codec in the first byte and
 * its size in the others; header; body. The answer has the request's opaque, in the same codec.
 * It knows no request but sends, and stores no topic, queue or offset.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    FRAME_MAX = 4 << 20,
    INPUT_BYTES = FRAME_MAX + (256 << 10),
    READ_BYTES = 256 << 10,
    ANSWER_MAX = 256,
    OPAQUE_AT = 5, /* in a binary header: code(2) language(1) version(2) opaque(4) */
    BINARY_HEAD = 21,
};

struct bytes {
    char *data;
    size_t used, room;
};

struct link {
    int fd;
    int closed;
    int waits_for_room; /* EPOLLOUT is on */
    char *input;
    size_t input_used;
    struct bytes output;
    size_t output_sent;
};

static int poller;
static struct bytes bodies; /* of this turn */

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static char *reserve(struct bytes *into, size_t more)
{
    if (into->used + more > into->room) {
        into->room = (into->used + more) * 2;
        into->data = realloc(into->data, into->room);
        if (into->data == NULL)
            die("realloc");
    }
    return into->data + into->used;
}

static uint32_t word(const char *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static void put_word(char *at, uint32_t value)
{
    value = htonl(value);
    memcpy(at, &value, 4);
}

/* The number after "opaque": in a JSON header; -1 if there is none. */
static long json_opaque(const char *header, size_t size)
{
    static const char name[] = "\"opaque\":";
    const char *at = memmem(header, size, name, sizeof name - 1), *end = header + size;
    long value = 0;
    if (at == NULL)
        return -1;
    for (at += sizeof name - 1; at < end && *at == ' '; at++)
        ;
    if (at == end || *at < '0' || *at > '9')
        return -1;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (*at - '0');
    return value;
}

static int answer_json(struct link *link, const char *header, size_t size)
{
    long opaque = json_opaque(header, size);
    char *at = reserve(&link->output, ANSWER_MAX);
    int length;
    if (opaque < 0)
        return -1;
    length = snprintf(at + 8, ANSWER_MAX - 8,
        "{\"code\":0,\"extFields\":{\"msgId\":\"7F00000100002A9F0000000000000000\","
        "\"queueId\":\"0\",\"queueOffset\":\"0\"},\"flag\":1,\"language\":\"JAVA\","
        "\"opaque\":%ld,\"serializeTypeCurrentRPC\":\"JSON\",\"version\":401}", opaque);
    put_word(at, (uint32_t)length + 4);
    put_word(at + 4, (uint32_t)length);
    link->output.used += 8 + (size_t)length;
    return 0;
}

static int answer_binary(struct link *link, const char *header, size_t size)
{
    static const struct { const char *name, *value; } fields[] = {
        {"msgId", "7F00000100002A9F0000000000000000"}, {"queueId", "0"}, {"queueOffset", "0"},
    };
    char *start = reserve(&link->output, ANSWER_MAX), *at = start + 8 + BINARY_HEAD;
    if (size < BINARY_HEAD)
        return -1;
    memset(start, 0, 8 + BINARY_HEAD);
    memcpy(start + 8 + OPAQUE_AT, header + OPAQUE_AT, 4);
    put_word(start + 8 + 9, 1); /* flag: an answer */
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t name = strlen(fields[i].name), value = strlen(fields[i].value);
        *at++ = 0;
        *at++ = (char)name;
        memcpy(at, fields[i].name, name);
        at += name;
        put_word(at, (uint32_t)value);
        memcpy(at + 4, fields[i].value, value);
        at += 4 + value;
    }
    put_word(start + 8 + 17, (uint32_t)(at - start) - 8 - BINARY_HEAD);
    put_word(start, (uint32_t)(at - start) - 4);
    put_word(start + 4, 1u << 24 | (uint32_t)((at - start) - 8));
    link->output.used += (size_t)(at - start);
    return 0;
}

/* Cut the whole frames off the input: bodies to this turn's bodies, answers to the output. */
static int take_frames(struct link *link)
{
    size_t at = 0;
    while (link->input_used - at >= 8) {
        const char *frame = link->input + at;
        size_t size = (size_t)word(frame) + 4;
        uint32_t mark = word(frame + 4), header = mark & 0xFFFFFF;
        int bad;
        if (size > FRAME_MAX || size < 8 + (size_t)header)
            return -1;
        if (link->input_used - at < size)
            break;
        bad = mark >> 24 ? answer_binary(link, frame + 8, header)
                         : answer_json(link, frame + 8, header);
        if (bad)
            return -1;
        memcpy(reserve(&bodies, size - 8 - header), frame + 8 + header, size - 8 - header);
        bodies.used += size - 8 - header;
        at += size;
    }
    link->input_used -= at;
    memmove(link->input, link->input + at, link->input_used);
    return 0;
}

/* One read; more of it makes the connection readable again in the next turn. */
static void receive(struct link *link)
{
    size_t room = INPUT_BYTES - link->input_used;
    ssize_t got = recv(link->fd, link->input + link->input_used,
                       room < READ_BYTES ? room : READ_BYTES, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        link->closed = 1;
        return;
    }
    link->input_used += (size_t)got;
    if (take_frames(link))
        link->closed = 1;
}

static void watch(struct link *link, int operation, int for_room)
{
    struct epoll_event event = {
        .events = EPOLLIN | (for_room ? (uint32_t)EPOLLOUT : 0), .data.ptr = link,
    };
    if (epoll_ctl(poller, operation, link->fd, &event))
        die("epoll_ctl");
    link->waits_for_room = for_room;
}

static void answer(struct link *link)
{
    while (link->output_sent < link->output.used) {
        ssize_t sent = send(link->fd, link->output.data + link->output_sent,
                            link->output.used - link->output_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            if (!link->waits_for_room)
                watch(link, EPOLL_CTL_MOD, 1);
            return;
        }
        if (sent < 0 && errno != EINTR) {
            link->closed = 1;
            return;
        }
        if (sent > 0)
            link->output_sent += (size_t)sent;
    }
    link->output.used = link->output_sent = 0;
    if (link->waits_for_room)
        watch(link, EPOLL_CTL_MOD, 0);
}

static void append(int file)
{
    static off_t end;
    size_t done = 0;
    while (done < bodies.used) {
        ssize_t written = pwrite(file, bodies.data + done, bodies.used - done, end);
        if (written < 0)
            die("pwrite");
        done += (size_t)written;
        end += written;
    }
    bodies.used = 0;
}

static void drop(struct link *link)
{
    close(link->fd);
    free(link->input);
    free(link->output.data);
    free(link);
}

static void greet(int listener)
{
    int on = 1, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct link *link = calloc(1, sizeof *link);
        if (link == NULL || (link->input = malloc(INPUT_BYTES)) == NULL)
            die("malloc");
        link->fd = fd;
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
            die("TCP_NODELAY");
        watch(link, EPOLL_CTL_ADD, 0);
    }
}

static int listen_somewhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) ||
        listen(listener, SOMAXCONN) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        die("listen");
    printf("limit ready 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int count, char **words)
{
    struct epoll_event events[EVENTS_MAX], listening = {.events = EPOLLIN, .data.ptr = NULL};
    int file, listener;
    if (count != 2) {
        fprintf(stderr, "usage: limit FILE\n");
        return 2;
    }
    file = open(words[1], O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    poller = epoll_create1(0);
    if (file < 0 || poller < 0)
        die(words[1]);
    listener = listen_somewhere();
    if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &listening))
        die("epoll_ctl");
    for (;;) {
        int ready = epoll_wait(poller, events, EVENTS_MAX, -1);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr == NULL)
                greet(listener);
            else if (events[i].events & ~(uint32_t)EPOLLOUT)
                receive(events[i].data.ptr);
        }
        append(file);
        for (int i = 0; i < ready; i++) {
            struct link *link = events[i].data.ptr;
            if (link == NULL)
                continue;
            answer(link);
            if (link->closed)
                drop(link);
        }
    }
}
