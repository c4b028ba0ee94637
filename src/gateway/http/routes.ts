import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type {
  EgressIdentity,
  PeerIdentity,
  PodIdentity,
  PodToken,
  UserIdentity,
  VerifierIdentity,
} from '../../identity/types.ts';
import type { GatewayDeps } from '../deps.ts';
import type { MessageLogFields } from '../tracing/message-traces.ts';

export type GatewayServer = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** Registers routes. Each states its callers in `config.access`; creating the server throws for a route without it. */
export type RouteModule = (server: GatewayServer, deps: GatewayDeps) => void;

/**
 * `pod`: a pod that is bound to an agent (`request.pod`). `warm-pod`: any agent pod (`request.podToken`). `verifier`: a verifier pod
 * (`request.verifier`). `egress`: a replica of the egress proxy (`request.egress`). `user`: a client with a token of `temper-users` of the namespace in the path's `:namespace` (`request.user`). `peer`: a ServiceAccount with a token for A2A (`request.peer`). `anyone`: no authentication; only for public content.
 */
export type RouteAccess = 'pod' | 'warm-pod' | 'verifier' | 'egress' | 'user' | 'peer' | 'anyone';

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: RouteAccess;
    /** The request needs an `Idempotency-Key` header, available as `request.idempotencyKey`. */
    idempotent?: boolean;
    /** The request waits for a change, so it counts as a long poll and not as a request in flight. */
    longPoll?: boolean;
    /** The body is the text of the request: what a signature covers. */
    rawBody?: boolean;
    /** The body is JSON with bytes after it. */
    attachment?: boolean;
    /** The response may have megabytes, so few of them are made at a time for each caller. */
    largeResponse?: boolean;
    /** The request writes to streams or buckets, so few of them are in progress at a time for each namespace. */
    writesStorage?: boolean;
    /** Limit of the values of the body: containers and members. Default `MAX_BODY_VALUES`. */
    maxValues?: number;
  }
  interface FastifyRequest {
    /** Only in routes with access `pod`; elsewhere reading it throws. */
    readonly pod: PodIdentity;
    /** Only in routes with access `warm-pod`; elsewhere reading it throws. */
    readonly podToken: PodToken | PodIdentity;
    /** Only in routes with access `verifier`; elsewhere reading it throws. */
    readonly verifier: VerifierIdentity;
    /** Only in routes with access `egress`; elsewhere reading it throws. */
    readonly egress: EgressIdentity;
    /** Only in routes with access `user`; elsewhere reading it throws. */
    readonly user: UserIdentity;
    /** Only in routes with access `peer`; elsewhere reading it throws. */
    readonly peer: PeerIdentity;
    /** Only in routes with `idempotent`; elsewhere reading it throws. */
    readonly idempotencyKey: string;
    /**
     * Only in routes with `largeResponse`; elsewhere reading it throws. The handler calls it with the size before it makes the response.
     * Throws TEMPER_RATE_LIMITED or TEMPER_OVERLOADED while too many large responses are held.
     */
    readonly holdResponse: (bytes: number) => void;
    /** Aborts when the client disconnects. Long polls combine it with `deps.draining`. */
    readonly disconnected: AbortSignal;
    /** Log fields of the message that the request concerns. */
    readonly logFields: MessageLogFields;
  }
}
