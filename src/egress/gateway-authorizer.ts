import type { GatewayClient } from '../gateway-client/gateway-client.ts';
import {
  EGRESS_API_PATHS,
  type EgressAuthorization,
  type EgressReportResult,
} from '../gateway-api/egress/egress-api.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { isErrorCode } from '../lib/error-codes.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json, member, textAt } from '../lib/json.ts';
import type {
  AuthorizedConnection,
  Authorizer,
  ConnectionReport,
  ConnectionRequest,
  EndedConnection,
} from './authorizer.ts';

/** Every decision is one of the gateway. An answer of another form allows nothing. */
export class GatewayAuthorizer implements Authorizer {
  readonly #client: Pick<GatewayClient, 'call'>;

  constructor(client: Pick<GatewayClient, 'call'>) {
    this.#client = client;
  }

  async authorize(request: ConnectionRequest, op: CallOptions): Promise<AuthorizedConnection> {
    const { token, deliveryToken, address, host, port } = request;
    const body = { token, deliveryToken, address, host, port };
    const answer = await this.#client.call({ method: 'POST', path: EGRESS_API_PATHS.authorize, body, op });
    const names = ['agent', 'agentUid', 'namespace', 'session', 'message'] as const;
    const remainingMs = member(answer, 'remainingMs');
    const isComplete = names.every((name) => textAt(answer, [name]) !== '') && typeof remainingMs === 'number';
    if (!isComplete) throw badResponse();
    // Gateways of an older release do not name the caller, which then has the limits of a pod.
    const caller = textAt(answer, ['caller']) === 'Gateway' ? 'Gateway' : 'Pod';
    return { ...(answer as Json as unknown as EgressAuthorization), caller };
  }

  async report(connections: readonly ConnectionReport[], op: CallOptions): Promise<readonly EndedConnection[]> {
    const body = { connections };
    const answer = await this.#client.call({ method: 'POST', path: EGRESS_API_PATHS.report, body, op });
    const ended = member(answer, 'ended');
    if (!Array.isArray(ended) || !ended.every(isEnded)) throw badResponse();
    return ended as Json as unknown as EgressReportResult['ended'];
  }
}

function isEnded(value: Json): boolean {
  return isJsonObject(value) && textAt(value, ['id']) !== '' && isErrorCode(member(value, 'code'));
}

function badResponse(): TemperError {
  return new TemperError('TEMPER_GATEWAY_BAD_RESPONSE', 'the gateway sent no decision');
}
