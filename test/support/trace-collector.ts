import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A span as a collector receives it, with its resource. */
export interface CollectedSpan {
  name: string;
  /** OTLP: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Record<string, unknown>;
  resource: Record<string, unknown>;
}

interface SentAttribute {
  key: string;
  value: Record<string, unknown>;
}
type Sent = Omit<CollectedSpan, 'attributes' | 'resource'> & { attributes?: SentAttribute[] };

/** An OTLP/HTTP collector on the loopback interface that stores all spans it receives. */
export class TraceCollector implements AsyncDisposable {
  readonly spans: CollectedSpan[] = [];
  /** The raw request bodies. */
  readonly bodies: string[] = [];
  #endpoint = '';
  readonly #server = createServer((request, response) => {
    void this.#handle(request, response);
  });

  static async start(): Promise<TraceCollector> {
    const collector = new TraceCollector();
    collector.#server.listen(0, '127.0.0.1');
    await once(collector.#server, 'listening');
    const { port } = collector.#server.address() as AddressInfo;
    collector.#endpoint = `http://127.0.0.1:${port}/v1/traces`;
    return collector;
  }

  get endpoint(): string {
    return this.#endpoint;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#store(await text(request));
    response.setHeader('content-type', 'application/json').end('{}');
  }

  #store(body: string): void {
    this.bodies.push(body);
    const { resourceSpans } = JSON.parse(body) as {
      resourceSpans: { resource: { attributes: SentAttribute[] }; scopeSpans: { spans: Sent[] }[] }[];
    };
    for (const { resource, scopeSpans } of resourceSpans) {
      const known = valuesOf(resource.attributes);
      for (const { spans } of scopeSpans) {
        for (const span of spans) {
          this.spans.push({ ...span, attributes: valuesOf(span.attributes ?? []), resource: known });
        }
      }
    }
  }
}

function valuesOf(attributes: readonly SentAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
