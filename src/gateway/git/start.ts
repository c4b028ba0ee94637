import { FairQueue } from '../../lib/async/fair-queue.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Network } from '../../net/dialer.ts';
import { EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import type { EgressHostsDeps } from '../capabilities/egress-hosts.ts';
import { HostCircuits } from '../capabilities/host-circuits.ts';
import type { GatewayConfig } from '../config.ts';
import { type AgentRepositories, openRepositories } from './agent-repositories.ts';

export interface RepositoriesDeps extends Pick<GatewayConfig, 'connections' | 'egress'> {
  deliveryTokens: EgressHostsDeps['deliveryTokens'];
  clock: Clock;
  /** Resolves private hosts. Default: the name server of the system. */
  network?: Network;
}

/** The repositories of the connections of the release. */
export function startRepositories({
  connections,
  egress,
  deliveryTokens,
  clock,
  network,
}: RepositoriesDeps): AgentRepositories {
  const reached = egress && { folder: egress.endpoints, tokenFile: egress.tokenFile, clock };
  return openRepositories(connections, {
    egress: reached && { files: new EgressEndpoints(reached), deliveryTokens },
    clock,
    network,
    circuits: new HostCircuits(clock),
    packs: new FairQueue(),
  });
}
