import type { Digest } from '../../lib/canonical.ts';
import { sharedName, type StoredTool, type ToolFacts } from './stored-tool.ts';

export const DIGEST: Digest = `sha256:${'a'.repeat(64)}`;
export const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';

/** A tool as the informer keeps it, a day old. */
export function aTool(
  facts: Partial<ToolFacts> = {},
  change: { metadata?: Partial<StoredTool['metadata']>; status?: StoredTool['status'] } = {},
): StoredTool {
  const merged: ToolFacts = {
    tool: 'csv_rows',
    digest: DIGEST,
    tier: 'Shared',
    contributors: ['agent/analyst'],
    requestNonce: undefined,
    mode: 'Sandbox',
    requires: { apis: [], domains: [], paths: [] },
    steps: [],
    shapes: { input: undefined, output: undefined },
    agent: undefined,
    sourceWithheld: false,
    replaces: undefined,
    problem: undefined,
    ...facts,
  };
  const name = sharedName('team-a', merged.tool, merged.digest);
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: {
      name,
      namespace: 'team-a',
      uid: `u-${name}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2031-05-04T00:00:00Z',
      ...change.metadata,
    },
    facts: merged,
    ...(change.status === undefined ? {} : { status: change.status }),
  };
}
