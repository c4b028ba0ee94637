import type { Children } from '../../agent/tools/children/port.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';
import {
  type ChildState,
  type KillRequest,
  POD_API_PATHS,
  type SpawnRequest,
  type SpecialistRequest,
} from '../../gateway-api/pod-api.ts';
import { malformedResponse, requireObject, requireText } from '../../gateway-api/response-parsing.ts';
import { POLL_GRACE_MS } from '../assignment.ts';
import type { GatewayClient } from '../gateway-client.ts';

export interface RemoteChildrenOptions {
  client: GatewayClient;
  clock: Clock;
  /** The token of the current delivery; throws when the pod has no delivery. */
  deliveryToken: () => string;
}

const MAX_POLL_SECONDS = 20;
/** What is left of the time of the call for its result. */
const RESULT_MS = 2_000;
const STATES: ReadonlySet<unknown> = new Set(['Requested', 'Done', 'Refused']);

/** The children of the agent of this pod, which the gateway and the operator manage. */
export function remoteChildren({ client, clock, deliveryToken }: RemoteChildrenOptions): Children {
  async function request(
    path: string,
    body: (waitSeconds: number) => SpawnRequest | SpecialistRequest | KillRequest,
    op: CallOptions,
  ): Promise<ChildState> {
    for (;;) {
      const leftMs = remainingMs(op, clock) - RESULT_MS;
      const waitSeconds = Math.max(0, Math.min(MAX_POLL_SECONDS, leftMs / 1_000));
      const timeoutMs = waitSeconds * 1_000 + POLL_GRACE_MS;
      const state = stateIn(await client.call({ method: 'POST', path, body: body(waitSeconds), op, timeoutMs }));
      if (state.state === 'Refused') {
        throw new TemperError('TEMPER_CHILD_REFUSED', state.reason ?? 'the request was refused');
      }
      if (state.state === 'Done') return state;
      if (leftMs <= 0) {
        throw new TemperError(
          'TEMPER_TIMEOUT',
          `the operator has not handled the request for "${state.name}" yet; look with agent_list`,
        );
      }
    }
  }
  return {
    async spawn(input, op) {
      const body = (waitSeconds: number): SpawnRequest => ({ deliveryToken: deliveryToken(), input, waitSeconds });
      return { name: (await request(POD_API_PATHS.children, body, op)).name };
    },
    async specialist(input, tainted, op) {
      const body = (waitSeconds: number): SpecialistRequest => ({
        deliveryToken: deliveryToken(),
        input,
        ...(tainted ? { tainted } : {}),
        waitSeconds,
      });
      const { name, ticket } = await request(POD_API_PATHS.specialists, body, op);
      if (ticket === undefined) throw malformedResponse('child.ticket');
      return { name, ticket };
    },
    async kill(agent, op) {
      const body = (waitSeconds: number): KillRequest => ({ deliveryToken: deliveryToken(), agent, waitSeconds });
      await request(POD_API_PATHS.endChild, body, op);
    },
    async list(op) {
      const body = { deliveryToken: deliveryToken() };
      return requireObject(await client.call({ method: 'POST', path: POD_API_PATHS.listAgents, body, op }), 'agents');
    },
  };
}

function stateIn(value: Json | undefined): ChildState {
  const state = requireObject(value, 'child');
  for (const key of ['name', 'state']) requireText(state, key, 'child');
  if (STATES.has(state['state'])) return state as unknown as ChildState;
  throw malformedResponse('child.state');
}
