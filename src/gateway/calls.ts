import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PersonIdentity, PodIdentity, PodToken } from '../identity/types.ts';
import { TemperError } from '../lib/errors.ts';
import type { MessageFacts } from './message-traces.ts';
import type { GatewayServer } from './routes.ts';

/** What the gateway knows of one call beside the request itself. */
export interface Call {
  pod?: PodIdentity;
  podToken?: PodToken | PodIdentity;
  person?: PersonIdentity;
  idempotencyKey?: string;
  gone: AbortSignal;
  /** Filled in by who finds out. */
  about: MessageFacts;
}

/** The facts of calls under way, and the members of a request that read them. */
export class Calls {
  readonly #calls = new WeakMap<FastifyRequest, Call>();

  begin(request: FastifyRequest, reply: FastifyReply): void {
    const gone = new AbortController();
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort(new DOMException('the caller is gone', 'AbortError'));
    });
    this.#calls.set(request, { gone: gone.signal, about: {} });
  }

  of(request: FastifyRequest): Call {
    const call = this.#calls.get(request);
    if (call === undefined) throw new TemperError('TEMPER_INTERNAL', 'a call was used before it began');
    return call;
  }

  /** Members that were not asked for by the route throw, so that a route without access reads nobody's identity. */
  decorate(server: GatewayServer): void {
    const { of } = { of: (request: FastifyRequest) => this.of(request) };
    const member = (name: keyof Call): void => {
      server.decorateRequest(name, {
        getter(this: FastifyRequest) {
          const value = of(this)[name];
          if (value === undefined) {
            throw new TemperError('TEMPER_INTERNAL', `request.${name} was read in a route that did not ask for it`);
          }
          return value;
        },
      });
    };
    for (const name of ['pod', 'podToken', 'person', 'idempotencyKey', 'gone', 'about'] as const) member(name);
  }
}
