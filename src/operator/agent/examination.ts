import { createManifestLoader } from '../../api/manifests.ts';
import type { Json } from '../../lib/json.ts';
import { grantsWithinPolicy } from '../../policy/grants.ts';
import { PATTERN_RULES } from '../../policy/pattern-rules.ts';
import type { StoredAgent, StoredPolicy } from '../kube-types.ts';

/** What specs break. Compiling and comparing patterns costs more than the rest of a reconcile, so answers are kept by version. */
export class Examination {
  readonly #loader = createManifestLoader({ patterns: PATTERN_RULES });
  readonly #specs = new Map<string, { generation: number; problem: string | undefined }>();
  readonly #pairs = new Map<string, { version: string; grant: string | undefined; model: string | undefined }>();

  /** The first rule the spec breaks, with the fix. */
  specProblem(object: StoredAgent | StoredPolicy): string | undefined {
    const { uid, generation, name, namespace } = object.metadata;
    const known = this.#specs.get(uid);
    if (known?.generation === generation) return known.problem;
    const { apiVersion, kind, spec } = object;
    const [first] = this.#loader.validate({ apiVersion, kind, metadata: { name, namespace }, spec } as unknown as Json);
    const problem = first === undefined ? undefined : told(first);
    this.#specs.set(uid, { generation, problem });
    return problem;
  }

  /** What the agent asks for beyond its policy: any grant, and its models where none is allowed. */
  beyondPolicy(agent: StoredAgent, policy: StoredPolicy): { grant: string | undefined; model: string | undefined } {
    const version = `${agent.metadata.generation} ${policy.metadata.uid} ${policy.metadata.generation}`;
    const known = this.#pairs.get(agent.metadata.uid);
    if (known?.version === version) return known;
    const problems = grantsWithinPolicy(agent.spec, policy.spec);
    const models = problems.filter(({ field }) => field.startsWith('spec.model.'));
    const grant = problems.find(({ field }) => !field.startsWith('spec.model.'))?.message;
    const all = 1 + (agent.spec.model.fallbacks?.length ?? 0);
    const found = { version, grant, model: models.length === all ? models[0]?.message : undefined };
    this.#pairs.set(agent.metadata.uid, found);
    return found;
  }

  forget(uid: string): void {
    this.#specs.delete(uid);
    this.#pairs.delete(uid);
  }
}

/** Most messages begin with the field they are about. */
function told({ field, message, fix }: { field: string; message: string; fix: string }): string {
  return `${message.startsWith(field) ? message : `${field}: ${message}`}; ${fix}`;
}
