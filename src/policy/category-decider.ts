import type { Decider, PolicyRequest, PolicySnapshot, ToolCategory } from './types.ts';

type Compile = (snapshot: PolicySnapshot) => Decider;

/** Decides each request at the level of its tool category. Compiles a level when the first request needs it. */
export function createCategoryDecider(snapshot: PolicySnapshot, compile: Compile): Decider {
  const { categoryLevels = {}, ...rest } = snapshot;
  const byLevel = new Map<string, Decider>();
  const at = (category: ToolCategory | undefined): Decider => {
    const level = (category === undefined ? undefined : categoryLevels[category]) ?? rest.level;
    const decider = byLevel.get(level) ?? compile({ ...rest, level });
    byLevel.set(level, decider);
    return decider;
  };
  return {
    decide: (request) => at(categoryOf(request)).decide(request),
    explain: (request) => at(categoryOf(request)).explain(request),
    forgeLimits: at('code_execution').forgeLimits,
    level: at(undefined).level,
    programs: at('terminal').programs,
  };
}

/** The tool category that a request is about; undefined for requests that no category covers. */
export function categoryOf(request: PolicyRequest): ToolCategory | undefined {
  switch (request.kind) {
    case 'Tool':
      return request.category;
    case 'Forge':
      return 'code_execution';
    case 'File':
      return 'file_system';
    case 'Network':
      return 'web';
    case 'Memory':
      return 'memory';
    case 'Message':
    case 'Spawn':
    case 'Kill':
    case 'Schedule':
    case 'Publish':
    case 'Subscribe':
      return 'communication';
    case 'Model':
    case 'Promote':
      return undefined;
    default:
      return request satisfies never;
  }
}
