import { watchCapabilities } from '../capabilities/start.ts';
import { openServiceTools, type ServiceToolsDeps } from '../services/start.ts';
import type { BrokeredTools } from './port.ts';

/** The tools that the gateway executes: those of services of the platform, and those of Capabilities, which take no name of the former. */
export function openBrokeredTools(
  watches: Parameters<typeof watchCapabilities>[0],
  deps: Omit<Parameters<typeof watchCapabilities>[1], 'services'> & ServiceToolsDeps,
): BrokeredTools {
  const services = openServiceTools(deps);
  const capabilities = watchCapabilities(watches, { ...deps, services });
  return {
    list: (namespace) => [...services.list(namespace), ...capabilities.list(namespace)],
    find: (namespace, name) => services.find(namespace, name) ?? capabilities.find(namespace, name),
  };
}
