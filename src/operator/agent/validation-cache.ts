import { createManifestLoader } from '../../api/manifests.ts';
import type { Json } from '../../lib/json.ts';
import { grantsWithinPolicy } from '../../policy/grants.ts';
import { BoundedPatternRules } from '../../policy/patterns/pattern-rules.ts';
import type { StoredAgent, StoredPolicy } from '../kube/types.ts';

/** Validates specs. Compiling and comparing patterns costs more than the rest of a reconcile, so results are cached by version. */
export class ValidationCache {
  readonly #patterns = new BoundedPatternRules();
  readonly #loader = createManifestLoader({ patterns: this.#patterns });
  readonly #specs = new Map<string, { generation: number; problem: string | undefined }>();
  readonly #pairs = new Map<string, { version: string; grant: string | undefined; model: string | undefined }>();

  /** The first rule that the spec violates, with the fix. Undefined for a valid spec. */
  specError(object: StoredAgent | StoredPolicy): string | undefined {
    const { uid, generation, name, namespace } = object.metadata;
    const known = this.#specs.get(uid);
    if (known?.generation === generation) return known.problem;
    const { apiVersion, kind, spec } = object;
    this.#patterns.startObject();
    const [first] = this.#loader.validate({ apiVersion, kind, metadata: { name, namespace }, spec } as unknown as Json);
    const problem = first === undefined ? undefined : describe(first);
    this.#specs.set(uid, { generation, problem });
    return problem;
  }

  /** Where the agent exceeds its policy: the first excessive grant, and `model` when the policy does not allow the primary model. */
  policyViolations(agent: StoredAgent, policy: StoredPolicy): { grant: string | undefined; model: string | undefined } {
    const version = `${agent.metadata.generation} ${policy.metadata.uid} ${policy.metadata.generation}`;
    const known = this.#pairs.get(agent.metadata.uid);
    if (known?.version === version) return known;
    const problems = grantsWithinPolicy(agent.spec, policy.spec);
    const grant = problems.find(({ field }) => !field.startsWith('spec.model.'))?.message;
    // The other models are left out of the agent, as `createAgentModel` does.
    const model = problems.find(({ field }) => field === 'spec.model.primary')?.message;
    const result = { version, grant, model };
    this.#pairs.set(agent.metadata.uid, result);
    return result;
  }

  forget(uid: string): void {
    this.#specs.delete(uid);
    this.#pairs.delete(uid);
  }
}

/** Adds the field to the message, unless the message already starts with it. */
function describe({ field, message, fix }: { field: string; message: string; fix: string }): string {
  return `${message.startsWith(field) ? message : `${field}: ${message}`}; ${fix}`;
}
