import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

const HOST = '127.0.0.1';

/**
 * The network between servers of one machine: each server reaches each other one through a TCP proxy of its own. A test can isolate a
 * server as a network partition does: no byte passes between it and the others, while its own clients stay connected to it.
 */
export class RouteProxies implements AsyncDisposable {
  readonly #links: readonly Link[];

  private constructor(links: readonly Link[]) {
    this.#links = links;
  }

  /** Starts the proxies for servers that listen for routes on these ports of loopback. */
  static async start(ports: readonly number[]): Promise<RouteProxies> {
    const pairs = ports.flatMap((_, from) => ports.map((port, to) => ({ from, to, port })));
    const links = pairs.filter(({ from, to }) => from !== to).map((pair) => Link.open(pair));
    return new RouteProxies(await Promise.all(links));
  }

  /** The port at which `from` reaches `to`. */
  port(from: number, to: number): number {
    const link = this.#links.find((one) => one.from === from && one.to === to);
    if (link === undefined) throw new Error(`no proxy leads from server ${from} to server ${to}`);
    return link.port;
  }

  /** Until `heal`, nothing passes between the server and the others. Their connections stay open, as when packets are lost. */
  isolate(server: number): void {
    for (const link of this.#links) if (link.from === server || link.to === server) link.cut();
  }

  heal(): void {
    for (const link of this.#links) link.heal();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#links.map((link) => link[Symbol.asyncDispose]()));
  }
}

interface LinkEnds {
  from: number;
  to: number;
  /** At which `to` listens. */
  port: number;
}

/** All connections that one server opens to another one. */
class Link implements AsyncDisposable {
  readonly from: number;
  readonly to: number;
  readonly #target: number;
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  /** Sockets whose other end has closed during a cut, or that were opened during it. */
  readonly #ended = new Set<Socket>();
  #isCut = false;

  private constructor({ from, to, port }: LinkEnds) {
    this.from = from;
    this.to = to;
    this.#target = port;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async open(ends: LinkEnds): Promise<Link> {
    const link = new Link(ends);
    await once(link.#server.listen(0, HOST), 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#connections) socket.pause();
  }

  heal(): void {
    this.#isCut = false;
    for (const socket of this.#ended) socket.destroy();
    this.#ended.clear();
    for (const socket of this.#connections) socket.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#connections) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(incoming: Socket): void {
    if (this.#isCut) {
      // The one that connects gets no answer to its handshake.
      this.#keep(incoming.pause());
      this.#ended.add(incoming);
      return;
    }
    const outgoing = connect(this.#target, HOST);
    this.#forward(incoming, outgoing);
    this.#forward(outgoing, incoming);
  }

  #forward(source: Socket, sink: Socket): void {
    this.#keep(source);
    source.on('data', (chunk) => {
      if (!sink.write(chunk)) source.pause();
    });
    sink.on('drain', () => {
      if (!this.#isCut) source.resume();
    });
    source.once('close', () => {
      if (this.#isCut) this.#ended.add(sink);
      else sink.destroy();
    });
  }

  #keep(socket: Socket): void {
    this.#connections.add(socket);
    // A server that is killed resets its connections.
    socket.on('error', () => undefined).once('close', () => this.#connections.delete(socket));
  }
}
