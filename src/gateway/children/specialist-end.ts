import { LABELS } from '../../api/cluster.ts';
import type { ChildRequestStore } from '../../nats/children/child-requests.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { isChildOf } from './family.ts';
import { requestId } from './requests.ts';

interface SpecialistEndDeps extends Pick<GatewayDeps, 'clock'> {
  directory: Pick<GatewayDeps['directory'], 'agent'>;
  childRequests: Pick<ChildRequestStore, 'addEnd'>;
}

/** Asks the operator to end a specialist that has answered, or will not. Other agents stay. */
export function specialistEnd({ directory, childRequests, clock }: SpecialistEndDeps) {
  return async (asking: AgentState, name: string, ticket: string): Promise<void> => {
    const { name: parent, namespace = '' } = asking.agent.metadata;
    const child = directory.agent(namespace, name);
    if (child === undefined || !isChildOf(child, asking) || !isSpecialist(child)) return;
    await childRequests.addEnd({
      id: requestId(`end ${ticket}`),
      parent: { uid: asking.uid, name: parent, namespace },
      name,
      state: 'Requested',
      order: { kind: 'Kill', uid: child.uid },
      time: clock.now().toISOString(),
    });
  };
}

function isSpecialist({ agent }: AgentState): boolean {
  return agent.metadata.labels?.[LABELS.specialist] !== undefined;
}
