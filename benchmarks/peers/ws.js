// `ws`: keep a set of sockets, send to each. node ws.js PORT
import { WebSocketServer } from "ws";

const subscribers = new Set();
const server = new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[2]), backlog: 4096 });

server.on("connection", (socket, request) => {
  if (request.url.startsWith("/pub")) {
    socket.on("message", (data) => {
      const text = data.toString();
      for (const subscriber of subscribers) subscriber.send(text);
    });
  } else {
    subscribers.add(socket);
    socket.on("close", () => subscribers.delete(socket));
    socket.send("[]");
  }
});
