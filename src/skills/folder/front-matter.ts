import { isJsonObject, type Json } from '../../lib/json.ts';
import type { Members } from './values.ts';

/** What SKILL.md says about its skill. */
export interface FrontMatter {
  name?: string;
  description?: string;
  /** What Temper keeps and does not use. */
  annotations: Record<string, string>;
}

const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const SKILL_ANNOTATIONS = {
  license: 'temper.dev/skill-license',
  compatibility: 'temper.dev/skill-compatibility',
  metadata: 'temper.dev/skill-metadata',
  version: 'temper.dev/skill-version',
} as const;
const MAX_METADATA = 4_096;

/** Keys of other programs that have no effect in Temper, with the reason. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  'allowed-tools': 'grants nothing: permissions come from the policy and the Agent only',
  model: 'chooses no model: spec.model of the Agent does',
  effort: 'sets nothing: spec.model of the Agent does',
  'argument-hint': 'has no effect: users do not call skills',
  'user-invocable': 'has no effect: users do not call skills',
  paths: 'has no effect: discovery decides by the query',
};

/** Keys that change what a skill does, so that a skill without them is another one. */
const REFUSED: Readonly<Record<string, string>> = {
  hooks: 'runs commands; use spec.hooks of the Agent',
  context: 'runs the skill in another agent; use agent_run',
  agent: 'runs the skill in another agent; use agent_run',
  shell: 'runs commands before the model reads the text; make them a script',
};

/** The keys of the format for skills, and those that programs add. Each is used, kept, reported or refused. */
export function readFrontMatter(members: Members): FrontMatter {
  const name = members.text('name', 64);
  const description = members.text('description', 1_024);
  if (name !== undefined && !NAME.test(name))
    members.error('name', 'has to be lower-case letters, digits and single dashes', 'rename the skill and its folder');
  if (members.boolean('disable-model-invocation') === true)
    members.error(
      'disable-model-invocation',
      'forbids models to load the skill, and only models load skills',
      'remove it',
    );
  for (const [key, reason] of Object.entries(WITHOUT_EFFECT))
    if (members.has(key)) members.warn(key, reason, 'remove it');
  for (const [key, reason] of Object.entries(REFUSED)) if (members.has(key)) members.error(key, reason, 'remove it');
  const annotations = annotationsOf(members);
  members.reportRest();
  return {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    annotations,
  };
}

function annotationsOf(members: Members): Record<string, string> {
  const texts = [
    [SKILL_ANNOTATIONS.license, members.text('license', 500)],
    [SKILL_ANNOTATIONS.compatibility, members.text('compatibility', 500)],
    [SKILL_ANNOTATIONS.version, members.text('version', 64)],
    [SKILL_ANNOTATIONS.metadata, metadataText(members)],
  ] as const;
  return Object.fromEntries(texts.flatMap(([key, text]) => (text === undefined ? [] : [[key, text]])));
}

function metadataText(members: Members): string | undefined {
  const metadata: Json | undefined = members.value('metadata');
  if (metadata === undefined || metadata === null) return undefined;
  const text = JSON.stringify(metadata);
  if (isJsonObject(metadata) && text.length <= MAX_METADATA) return text;
  members.error('metadata', `has to be a map of at most ${MAX_METADATA} characters`);
  return undefined;
}
