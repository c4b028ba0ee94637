import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { PersonIdentity, PodIdentity, PodToken } from '../identity/types.ts';
import type { GatewayDeps } from './deps.ts';
import type { MessageFacts } from './message-traces.ts';

export type GatewayServer = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** Adds its routes. Each says in `config.access` who may call it; one that does not is refused when the server is made. */
export type RouteModule = (server: GatewayServer, deps: GatewayDeps) => void;

/**
 * `pod`: a pod that is bound to an agent (`request.pod`). `warm-pod`: any agent pod (`request.podToken`). `person`:
 * somebody with a token of `temper-people` whose namespace is the path's `:namespace` (`request.person`). `anyone`:
 * nobody is asked; for what holds no secret.
 */
export type Access = 'pod' | 'warm-pod' | 'person' | 'anyone';

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    /** The call needs an `Idempotency-Key`; `request.idempotencyKey` is it. */
    idempotent?: boolean;
    /** The call waits for something to happen, so it is not counted among those in flight. */
    longPoll?: boolean;
  }
  interface FastifyRequest {
    /** Of routes with access `pod`. Reading it elsewhere throws. */
    readonly pod: PodIdentity;
    /** Of routes with access `warm-pod`. Reading it elsewhere throws. */
    readonly podToken: PodToken | PodIdentity;
    /** Of routes with access `person`. Reading it elsewhere throws. */
    readonly person: PersonIdentity;
    /** Of routes with `idempotent`. Reading it elsewhere throws. */
    readonly idempotencyKey: string;
    /** Aborts when the caller is gone. Long polls join it with `deps.draining`. */
    readonly gone: AbortSignal;
    /** What the log of the call says of the message it is about. */
    readonly about: MessageFacts;
  }
}
