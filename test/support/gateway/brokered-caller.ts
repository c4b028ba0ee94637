import { remoteBrokeredTools } from '../../../src/gateway-client/brokered/brokered-tools.ts';
import type { BrokeredTools } from '../../../src/gateway/brokered/port.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Json } from '../../../src/lib/json.ts';
import type { CallContext } from '../../../src/tools/contract.ts';
import { NEVER_ABORTED } from '../stubs.ts';
import type { ModelGatewayFixture, ModelGatewayReplica } from './model-gateway-fixture.ts';

export interface BrokeredCaller {
  fixture: ModelGatewayFixture;
  gateway: ModelGatewayReplica;
  tools: Pick<BrokeredTools, 'list'>;
}

export interface CalledTool {
  agent: string;
  name: string;
  input: Json;
  session?: string;
  message?: string;
}

/** Calls a brokered tool of namespace `team-a` as a pod does. The signatures are those of the answer. */
export async function callBrokered(
  { fixture, gateway, tools }: BrokeredCaller,
  { agent, name, input, session = 's1', message = 'message-1' }: CalledTool,
): Promise<{ output: Json | undefined; signatures: string[] }> {
  const signatures: string[] = [];
  // The gateway limits the connections of an address.
  await using client = await fixture.connect(agent, gateway);
  const definitions = tools.list('team-a').map(({ definition, descriptor }) => {
    const {
      locality: _locality,
      examples: _examples,
      usage: _usage,
      failures: _failures,
      hosts = [],
      ...described
    } = descriptor;
    return { definition, ...described, hosts: [...hosts] };
  });
  const all = remoteBrokeredTools(definitions, {
    client,
    clock: systemClock,
    deliveryToken: () => fixture.deliveryToken(agent, session, 'root-1', message),
    onAnswerSignature: (signature) => signatures.push(signature),
  });
  const tool = all.find(({ descriptor }) => descriptor.name === name);
  const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: `call-${name}-${message}` };
  return { output: await tool?.call(input, { op } as CallContext), signatures };
}

/** A text as it is, and any other output as JSON. */
export function shownOutput({ output }: { output: Json | undefined }): string {
  return typeof output === 'string' ? output : JSON.stringify(output ?? null);
}
