import { EgressEndpoints } from '../../gateway-client/endpoints/egress-endpoints.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Network } from '../../net/dialer.ts';
import type { BrokeredTool, BrokeredTools } from '../brokered/port.ts';
import type { EgressHostsDeps } from '../capabilities/egress-hosts.ts';
import { HostCircuits } from '../capabilities/host-circuits.ts';
import type { GatewayConfig } from '../config.ts';
import { databaseTool, openDatabase } from './database-tool.ts';
import { searchTool } from './search-tool.ts';

export interface ServiceToolsDeps extends Pick<GatewayConfig, 'webSearch' | 'databases' | 'egress'> {
  deliveryTokens: EgressHostsDeps['deliveryTokens'];
  clock: Clock;
  /** Resolves private hosts. Default: the name server of the system. */
  network?: Network;
}

/** The tools of the services that the platform configured, for the namespaces that it names. */
export function openServiceTools(deps: ServiceToolsDeps): BrokeredTools {
  const { webSearch, databases, clock, network } = deps;
  const search =
    webSearch === undefined
      ? undefined
      : searchTool(webSearch, {
          egress: openEgress(deps),
          circuits: new HostCircuits(clock),
          clock,
          ...(network === undefined ? {} : { network }),
        });
  const ofNamespaces = databaseTools(databases, clock);
  const list = (namespace: string): BrokeredTool[] => {
    const hasSearch = webSearch?.namespaces?.includes(namespace) ?? webSearch !== undefined;
    return [hasSearch ? search : undefined, ofNamespaces.get(namespace)].filter((tool) => tool !== undefined);
  };
  return { list, find: (namespace, name) => list(namespace).find(({ descriptor }) => descriptor.name === name) };
}

function openEgress({ egress, deliveryTokens, clock }: ServiceToolsDeps): EgressHostsDeps | undefined {
  if (egress === undefined) return undefined;
  const { endpoints: folder, tokenFile } = egress;
  return { files: new EgressEndpoints({ folder, tokenFile, clock }), deliveryTokens };
}

/** One tool for each namespace, which knows the databases of that namespace alone. */
function databaseTools(services: ServiceToolsDeps['databases'], clock: Clock): ReadonlyMap<string, BrokeredTool> {
  const opened = services.map((service) => openDatabase(service, clock));
  const namespaces = new Set(services.flatMap((service) => service.namespaces));
  return new Map(
    Array.from(namespaces, (namespace) => {
      const own = opened.filter(({ service }) => service.namespaces.includes(namespace));
      return [namespace, databaseTool(own)];
    }),
  );
}
