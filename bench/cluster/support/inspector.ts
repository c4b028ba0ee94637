interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface Evaluation {
  readonly result: { readonly value?: unknown };
  readonly exceptionDetails?: { readonly text: string };
}

/** A client for the inspector of a Node process: heap size after a garbage collection, and CPU profiles. */
export class Inspector implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #serial = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result, error } = JSON.parse(String(data)) as Answer;
      if (id === undefined) return;
      const waiting = this.#waiting.get(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(`the inspector: ${error.message}`));
      this.#waiting.delete(id);
    });
  }

  static async open(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', () => reject(new Error(`the inspector at ${url} does not respond`)), {
        once: true,
      });
    });
    return new Inspector(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
  }

  /** Used heap bytes after a full garbage collection. */
  async heapAfterCollection(): Promise<number> {
    await this.#call('HeapProfiler.enable');
    // The second collection frees objects that the first one only made collectable.
    await this.#call('HeapProfiler.collectGarbage');
    await this.#call('HeapProfiler.collectGarbage');
    const { usedSize } = (await this.#call('Runtime.getHeapUsage')) as { usedSize: number };
    return usedSize;
  }

  /** Evaluates the expression, in the process and returns its value, which must be plain JSON. */
  async evaluate<T>(expression: string): Promise<T> {
    const parameters = { expression, returnByValue: true };
    const { result, exceptionDetails } = (await this.#call('Runtime.evaluate', parameters)) as Evaluation;
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${exceptionDetails.text}`);
    return result.value as T;
  }

  async startProfile(): Promise<void> {
    await this.#call('Profiler.enable');
    await this.#call('Profiler.start');
  }

  /** Stops the profile and returns it in the format of `node --cpu-prof`. */
  async endProfile(): Promise<object> {
    const { profile } = (await this.#call('Profiler.stop')) as { profile: object };
    return profile;
  }

  #call(method: string, params: object = {}): Promise<unknown> {
    this.#serial += 1;
    const id = this.#serial;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return waiting.promise;
  }
}
