import type { FastifyReply, FastifyRequest } from 'fastify';
import type {
  EgressIdentity,
  PeerIdentity,
  PodIdentity,
  PodToken,
  UserIdentity,
  VerifierIdentity,
} from '../../identity/types.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import type { MessageLogFields } from '../tracing/message-traces.ts';
import type { GatewayServer } from './routes.ts';

/** What the gateway knows about one request beside the request itself. */
export interface RequestContext {
  /** Of the TCP connection, also after its end; forwarding headers are not trusted. Empty when the client left before the request was read. */
  readonly address: string;
  pod?: PodIdentity;
  podToken?: PodToken | PodIdentity;
  verifier?: VerifierIdentity;
  egress?: EgressIdentity;
  user?: UserIdentity;
  peer?: PeerIdentity;
  idempotencyKey?: string;
  /** The code of the error response. */
  errorCode?: ErrorCode;
  /** Only in routes with large responses: counts the response when it is large. */
  holdResponse?: (bytes: number) => void;
  /** Aborts when the client disconnects. */
  disconnected: AbortSignal;
  /** Log fields of the message of the request; handlers add them. */
  logFields: MessageLogFields;
}

/** Contexts of the requests in progress, and the request properties that read them. */
export class RequestContexts {
  readonly #contexts = new WeakMap<FastifyRequest, RequestContext>();

  create(request: FastifyRequest, reply: FastifyReply): void {
    const disconnected = new AbortController();
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) disconnected.abort(new DOMException('the client disconnected', 'AbortError'));
    });
    const address = request.socket.remoteAddress ?? '';
    this.#contexts.set(request, { address, disconnected: disconnected.signal, logFields: {} });
  }

  of(request: FastifyRequest): RequestContext {
    const context = this.#contexts.get(request);
    if (context === undefined)
      throw new TemperError('TEMPER_INTERNAL', 'the context of a request was read before it was created');
    return context;
  }

  /** Properties that the route did not request throw, so that a route cannot read an identity it did not authenticate. */
  decorate(server: GatewayServer): void {
    const { of } = { of: (request: FastifyRequest) => this.of(request) };
    const member = (name: keyof RequestContext): void => {
      server.decorateRequest(name, {
        getter(this: FastifyRequest) {
          const value = of(this)[name];
          if (value === undefined) {
            throw new TemperError('TEMPER_INTERNAL', `request.${name} was read in a route that does not declare it`);
          }
          return value;
        },
      });
    };
    const names = [
      'pod',
      'podToken',
      'verifier',
      'egress',
      'user',
      'peer',
      'idempotencyKey',
      'holdResponse',
      'disconnected',
      'logFields',
    ] as const;
    for (const name of names) member(name);
  }
}
