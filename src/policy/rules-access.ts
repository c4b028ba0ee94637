import type { Prepared } from './prepare.ts';
import { allowed, deny, escalate, notApplicable, passed } from './rules.ts';
import type { RequestOf, Rule } from './rules.ts';
import { taintedRule } from './rules-common.ts';
import { ROOT, pathSegments } from './subjects.ts';

/** The segments of an absolute path, resolved against the workspace, or the reason why the path is invalid. */
export function resolvePath({ workspace }: Prepared, path: string): readonly string[] | string {
  if (path === '') return 'is empty';
  const segments = pathSegments(path);
  if (typeof segments === 'string') return segments;
  return segments[0] === ROOT ? segments : [...workspace, ...segments];
}

export function isInScope({ level, workspace, project }: Prepared, segments: readonly string[]): boolean {
  const scope = level.constraints.files;
  if (scope === 'Full') return true;
  return isBelow(workspace, segments) || (scope === 'Project' && isBelow(project, segments));
}

function isBelow(root: readonly string[], segments: readonly string[]): boolean {
  return root.every((segment, index) => segments[index] === segment);
}

export function fileRules(prepared: Prepared): Rule<RequestOf<'File'>>[] {
  const { level } = prepared;
  const scope = level.constraints.files;
  return [
    {
      id: 'path.form',
      check: ({ path }) => {
        const resolved = resolvePath(prepared, path);
        return typeof resolved === 'string'
          ? deny(`The path ${resolved}; write it plainly, relative to the workspace.`)
          : undefined;
      },
      note: () => passed('the path is in plain form'),
    },
    {
      id: 'constraint.files',
      check: ({ path, access }) => {
        const resolved = resolvePath(prepared, path);
        if (typeof resolved !== 'string' && isInScope(prepared, resolved)) return undefined;
        return deny(
          `The path is outside the ${scope.toLowerCase()}, which is all that level ${level.name} may ${access}; use a path below the workspace.`,
        );
      },
      note: () => allowed(`within file scope ${scope} of level ${level.name}`),
    },
  ];
}

export function memoryRules({ memoryRead, memoryWrite, snapshot }: Prepared): Rule<RequestOf<'Memory'>>[] {
  return [
    {
      id: 'grant.memory',
      check: ({ key, access }) => {
        const set = access === 'read' ? memoryRead : memoryWrite;
        return set.has(key)
          ? undefined
          : deny(
              `Agent "${snapshot.agent.name}" may not ${access} memory "${key}": grants.memory.${access} allows ${set.describe()}.`,
            );
      },
      note: ({ key, access }) =>
        allowed(`granted by grants.memory.${access} "${(access === 'read' ? memoryRead : memoryWrite).find(key)}"`),
    },
  ];
}

export function messageRules(prepared: Prepared): Rule<RequestOf<'Message'>>[] {
  const { messages, snapshot } = prepared;
  return [
    taintedRule<RequestOf<'Message'>>(prepared, 'message'),
    {
      id: 'grant.messages',
      check: ({ agent }) =>
        messages.has(agent)
          ? undefined
          : deny(
              `Agent "${snapshot.agent.name}" may not message "${agent}": grants.messages allows ${messages.describe()}.`,
            ),
      note: ({ agent }) => allowed(`granted by grants.messages "${messages.find(agent)}"`),
    },
  ];
}

/** The default model of the provider configuration. */
const DEFAULT_MODEL = 'default/default';

export function modelRules({ models, snapshot }: Prepared): Rule<RequestOf<'Model'>>[] {
  const { model: modelSpec } = snapshot.agent.spec;
  const named = [modelSpec.primary, ...(modelSpec.fallbacks ?? [])];
  const policy = snapshot.policy.name;
  return [
    {
      id: 'grant.model',
      check: ({ model }) =>
        named.includes(model) || named.includes(DEFAULT_MODEL)
          ? undefined
          : deny(`Agent "${snapshot.agent.name}" does not name model ${model}: spec.model is ${named.join(', ')}.`),
      note: () => allowed(`spec.model names ${named.join(', ')}`),
    },
    {
      id: 'policy.models',
      check: ({ model }) =>
        models === undefined || models.has(model)
          ? undefined
          : deny(`TrustPolicy "${policy}" does not allow model ${model}: models.allow is ${models.describe()}.`),
      note: ({ model }) =>
        models === undefined
          ? notApplicable('models.allow is absent: any configured model')
          : allowed(`allowed by models.allow "${models.find(model)}"`),
    },
  ];
}

export function promoteRules(prepared: Prepared): Rule<RequestOf<'Promote'>>[] {
  const { promotion } = prepared.snapshot.policy.spec;
  return [
    taintedRule<RequestOf<'Promote'>>(prepared, 'promote'),
    {
      id: 'promotion.human',
      check: ({ tool, tier }) => {
        if (tier === 'Shared')
          return escalate(`Tool "${tool}" would reach every agent of the namespace; an approver decides.`);
        return promotion?.toAgent?.requireHuman === true
          ? escalate(
              `Tool "${tool}" would remain after its session, and promotion.toAgent.requireHuman is set; an approver decides.`,
            )
          : undefined;
      },
      note: () => passed('tier Agent needs no approver under this policy'),
    },
  ];
}
