import { bytesOf, type KeptInput } from './use-record.ts';

/** Bytes of stored inputs and recordings per agent: read once per namespace, then counted. */
export class AgentBytes {
  readonly #read: (namespace: string) => Promise<KeptInput[]>;
  readonly #loading = new Map<string, Promise<void>>();
  readonly #bytes = new Map<string, number>();

  constructor(read: (namespace: string) => Promise<KeptInput[]>) {
    this.#read = read;
  }

  load(namespace: string): Promise<void> {
    const loading = this.#loading.get(namespace) ?? this.#load(namespace);
    this.#loading.set(namespace, loading);
    return loading;
  }

  of(namespace: string, agent: string): number {
    return this.#bytes.get(keyOf(namespace, agent)) ?? 0;
  }

  replace(namespace: string, before: readonly KeptInput[], after: readonly KeptInput[]): void {
    const agents = new Set([...before, ...after].map(({ agent }) => agent).filter((agent) => agent !== undefined));
    for (const agent of agents) {
      const change = bytesOf(after, agent) - bytesOf(before, agent);
      if (change !== 0) this.#bytes.set(keyOf(namespace, agent), this.of(namespace, agent) + change);
    }
  }

  async #load(namespace: string): Promise<void> {
    try {
      this.replace(namespace, [], await this.#read(namespace));
    } catch (error) {
      this.#loading.delete(namespace);
      throw error;
    }
  }
}

function keyOf(namespace: string, agent: string): string {
  return `${namespace}/${agent}`;
}
