/** Speaks to the inspector of a Node process, for what only it can be asked: its heap after a collection, and where its time goes. */
export class Inspector implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #serial = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
      if (id === undefined) return;
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    });
  }

  static async open(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', () => reject(new Error(`the inspector at ${url} does not answer`)), {
        once: true,
      });
    });
    return new Inspector(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
  }

  /** Bytes of the heap in use right after a full collection. */
  async heapAfterCollection(): Promise<number> {
    await this.#call('HeapProfiler.enable');
    // The second one takes what the first one only made ready to go.
    await this.#call('HeapProfiler.collectGarbage');
    await this.#call('HeapProfiler.collectGarbage');
    const { usedSize } = (await this.#call('Runtime.getHeapUsage')) as { usedSize: number };
    return usedSize;
  }

  async startProfile(): Promise<void> {
    await this.#call('Profiler.enable');
    await this.#call('Profiler.start');
  }

  /** A profile as `node --cpu-prof` writes it. */
  async endProfile(): Promise<object> {
    const { profile } = (await this.#call('Profiler.stop')) as { profile: object };
    return profile;
  }

  #call(method: string): Promise<unknown> {
    this.#serial += 1;
    const id = this.#serial;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method }));
    });
  }
}
