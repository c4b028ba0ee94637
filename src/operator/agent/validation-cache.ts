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

  /** Where the agent exceeds its policy: the first excessive grant, and `model` only when the policy allows none of its models. */
  policyViolations(agent: StoredAgent, policy: StoredPolicy): { grant: string | undefined; model: string | undefined } {
    const version = `${agent.metadata.generation} ${policy.metadata.uid} ${policy.metadata.generation}`;
    const known = this.#pairs.get(agent.metadata.uid);
    if (known?.version === version) return known;
    const problems = grantsWithinPolicy(agent.spec, policy.spec);
    const models = problems.filter(({ field }) => field.startsWith('spec.model.'));
    const grant = problems.find(({ field }) => !field.startsWith('spec.model.'))?.message;
    const { routing = {}, fallbacks = [] } = agent.spec.model;
    const all = 1 + Object.keys(routing).length + fallbacks.length;
    const result = { version, grant, model: models.length === all ? models[0]?.message : undefined };
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
