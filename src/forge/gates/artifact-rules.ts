import type { Json, JsonObject } from '../../lib/json.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';
import { checkShape } from './shape.ts';

/** The rules of a request, applied to an artifact that was built elsewhere: no artifact may be what no request can be. The policy gate counts the tests. */
export function checkArtifactRules(open: ParsedArtifact): readonly ForgeViolation[] {
  const shape = checkShape(requestOf(open), 1);
  return 'violations' in shape ? shape.violations : [];
}

/** The request that gives this artifact. */
function requestOf({ artifact, inputSchema, outputSchema, tests }: ParsedArtifact): JsonObject {
  const { name, description, implementation, requires, limits } = artifact;
  const { apis, domains, paths } = requires;
  const steps = implementation.steps?.map((step) => ({
    ...step,
    inputMapping: JSON.parse(step.inputMapping) as Json,
  }));
  return {
    name,
    description,
    inputSchema,
    outputSchema,
    implementation: {
      mode: implementation.mode === 'Sandbox' ? 'sandbox' : 'compose',
      ...(implementation.source === undefined ? {} : { code: implementation.source }),
      ...(steps === undefined ? {} : { steps: steps as unknown as Json }),
      allowlist: apis,
      domains,
      paths,
    },
    testCases: tests as unknown as Json,
    limits: { ...limits },
  };
}
