import { LABELS, RELEASE_OBJECTS } from '../../api/cluster.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { OperatorConfig } from '../config.ts';
import { podTemplate } from '../pods/pod-template.ts';

/** A verifier pod: the two containers of an agent pod in the namespace of the release, under an account without permissions. */
export interface VerifierTemplate {
  readonly digest: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

interface Container {
  readonly name: string;
  readonly [field: string]: unknown;
}

/** Undefined for a release without verifiers. Tools run under the first sandbox class. */
export function verifierTemplate(config: OperatorConfig): VerifierTemplate | undefined {
  const [sandboxClass] = config.sandboxClasses;
  if (config.verifier === undefined || sandboxClass === undefined) return undefined;
  const { spec } = podTemplate(config, sandboxClass);
  // The quota of agents is not that of verifiers.
  const { priorityClassName: _agents, containers, ...shared } = spec;
  const [agent, ...sandbox] = containers as readonly Container[];
  const verifierSpec = {
    ...shared,
    serviceAccountName: RELEASE_OBJECTS.verifierServiceAccount,
    containers: [{ ...agent, name: 'verifier', args: ['serve', 'verifier'] }, ...sandbox],
  };
  const labels = { ...config.verifier.podLabels, [LABELS.verifierPod]: 'true' };
  return { digest: digestOf({ labels, spec: verifierSpec } as unknown as Json), labels, spec: verifierSpec };
}
