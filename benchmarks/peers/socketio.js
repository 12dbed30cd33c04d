// socket.io: one room, in which every connection without role=pub is. node socketio.js PORT
import { createServer } from "node:http";
import { Server } from "socket.io";

const HOUR = 3600_000; // servers stand still while others are measured: no pings
const http = createServer();
const io = new Server(http, { transports: ["websocket"], pingInterval: HOUR, pingTimeout: HOUR });

io.on("connection", (socket) => {
  if (socket.handshake.query.role === "pub") {
    socket.on("pub", (data) => io.to("g").emit("m", data));
  } else {
    socket.join("g");
  }
});

http.listen({ host: "127.0.0.1", port: Number(process.argv[2]), backlog: 4096 });
