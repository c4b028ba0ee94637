import { basename } from 'node:path';
import { API_VERSION } from '../../api/names.ts';
import type { Capability, CapabilitySpec } from '../../api/v1alpha1/capability.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { readCapabilityDocument } from './capability-document.ts';
import { hiddenCharacter, normalized, parseSkillDocument, parseYaml, type SkillDocument } from './document-text.ts';
import { addFinding, hasErrors, type Report, type SkillFinding } from './finding.ts';
import { type FolderFiles, readFolderFiles } from './folder-files.ts';
import { type FrontMatter, readFrontMatter } from './front-matter.ts';
import { readSource } from './source-file.ts';
import { Members } from './values.ts';

/** A folder as Capabilities: a skill, or another capability and the skill with its text. Empty when a finding is an error. */
export interface SkillFolder {
  capabilities: readonly Capability[];
  findings: readonly SkillFinding[];
}

/** Checks an object as `temper validate` does; the problems in words. */
type ObjectCheck = (object: Json) => readonly { field: string; message: string; fix: string }[];

export interface SkillFolderOptions {
  check: ObjectCheck;
  /** Names that skills must not have: a reader would take one for the tool. */
  reserved: ReadonlySet<string>;
}

const DOCUMENTS = ['SKILL.md', 'CAPABILITY.yaml'];

/** Reads a folder with SKILL.md, CAPABILITY.yaml or both. Never throws for what the folder contains. */
export async function readSkillFolder(folder: string, options: SkillFolderOptions): Promise<SkillFolder> {
  const { files, findings: found } = await readFolderFiles(folder);
  const findings = [...found];
  const source = await readSource(folder, reportTo(findings));
  return skillFolderOf({ name: basename(folder), files, findings, source }, options);
}

/** The files of a folder with this name, as Capabilities. */
export function skillFolderOf(
  { name, files, findings: found, source }: FolderFiles & { name: string; source: string | undefined },
  options: SkillFolderOptions,
): SkillFolder {
  const findings = [...found];
  const report = reportTo(findings);
  const read = hasErrors(findings) ? [] : capabilitiesOf(name, files, source, report);
  for (const capability of read) checkObject(capability, options, report);
  return { capabilities: hasErrors(findings) ? [] : read, findings };
}

function reportTo(findings: SkillFinding[]): Report {
  return (finding) => addFinding(findings, finding);
}

/** The files of a folder that its Capabilities have: the documents, and the resources that were not left out. */
export function usedFiles(files: ReadonlyMap<string, string>, { capabilities }: SkillFolder): Map<string, string> {
  const resources = capabilities.flatMap(({ spec }) => spec.resources ?? []).map(({ path }) => path);
  const used = new Set([...DOCUMENTS, ...resources]);
  return new Map([...files].filter(([path]) => used.has(path)));
}

function capabilitiesOf(
  folder: string,
  files: ReadonlyMap<string, string>,
  source: string | undefined,
  report: Report,
): Capability[] {
  const [skillText, capabilityText] = DOCUMENTS.map((name) => files.get(name));
  if (skillText === undefined && capabilityText === undefined) {
    const message = 'the folder has neither SKILL.md nor CAPABILITY.yaml';
    report({ level: 'error', file: '.', rule: 'document', message, fix: 'add one of them' });
    return [];
  }
  const document = skillText === undefined ? { body: '' } : parseSkillDocument(skillText, report);
  const front = document === undefined ? undefined : frontMatterOf(document, capabilityText !== undefined, report);
  if (document === undefined || front === undefined) return [];
  const resources = resourcesOf(files, report);
  const parts: SkillParts = { front, body: document.body, resources, source };
  if (capabilityText !== undefined) return describedCapabilities(capabilityText, parts, report);
  const { name, description } = front;
  if (name === undefined || description === undefined) return [];
  if (name !== folder) {
    const message = `the name ${printable(name, 64)} differs from that of the folder, ${printable(folder, 64)}`;
    report({ level: 'warning', file: 'SKILL.md', rule: 'folder-name', message, fix: 'rename the folder' });
  }
  return [skillCapability(name, { type: 'Skill', description }, parts)];
}

/** A resource with characters that no reader sees is left out: the model would read them. */
function resourcesOf(files: ReadonlyMap<string, string>, report: Report): SkillParts['resources'] {
  return [...files].flatMap(([path, content]) => {
    if (DOCUMENTS.includes(path)) return [];
    const text = normalized(content);
    const hidden = hiddenCharacter(text);
    if (hidden === undefined) return [{ path, text }];
    const message = `${hidden}, so the file is left out`;
    report({ level: 'warning', file: path, rule: 'characters', message, fix: 'remove it' });
    return [];
  });
}

interface SkillParts {
  front: FrontMatter;
  body: string;
  resources: NonNullable<CapabilitySpec['resources']>;
  source: string | undefined;
}

/** Beside CAPABILITY.yaml the text may stand alone. */
function frontMatterOf(
  { frontMatter, body }: SkillDocument,
  isOptional: boolean,
  report: Report,
): FrontMatter | undefined {
  if (frontMatter === undefined && isOptional) return { annotations: {} };
  const members = Members.of('SKILL.md', frontMatter ?? null, report);
  if (members === undefined) return undefined;
  const front = readFrontMatter(members);
  for (const key of ['name', 'description'] as const)
    if (!isOptional && !members.has(key)) members.error(key, 'is missing', `add ${key} to the front matter`);
  if (body === '')
    report({ level: 'error', file: 'SKILL.md', rule: 'no-text', message: 'the skill has no text', fix: 'write it' });
  return front;
}

function describedCapabilities(text: string, parts: SkillParts, report: Report): Capability[] {
  const value = parseYaml(text, 'CAPABILITY.yaml', report);
  const members = value === undefined ? undefined : Members.of('CAPABILITY.yaml', value, report);
  const described = members === undefined ? undefined : readCapabilityDocument(members);
  if (described === undefined || members === undefined) return [];
  const { name, spec } = described;
  if (parts.front.name !== undefined && parts.front.name !== name)
    members.error('name', `is not the name in SKILL.md, ${printable(parts.front.name, 64)}`);
  const body = parts.body === '' ? (described.content ?? '') : parts.body;
  if (spec.type === 'Skill') return [skillCapability(name, spec, { ...parts, body })];
  const own = object(name, spec, parts.front.annotations);
  return body === '' ? [own] : [own, guideOf(name, spec, { ...parts, body })];
}

/** The text beside a capability that is no skill is a skill of its own, which needs the capability. */
function guideOf(name: string, { type, description, tags }: CapabilitySpec, parts: SkillParts): Capability {
  const kind = type.toLowerCase();
  const spec: CapabilitySpec = {
    type: 'Skill',
    description: `How to use ${kind} ${name}. ${description}`.slice(0, 2_048),
    ...(tags === undefined ? {} : { tags }),
    edges: [{ type: 'DependsOn', target: `${kind}:${name}`, weight: '1.00' }],
  };
  return skillCapability(`${name.slice(0, 56)}-guide`, spec, parts);
}

function skillCapability(
  name: string,
  spec: CapabilitySpec,
  { front, body, resources, source }: SkillParts,
): Capability {
  return object(
    name,
    {
      ...spec,
      ...(body === '' ? {} : { content: body }),
      ...(resources.length === 0 ? {} : { resources }),
      ...(source === undefined ? {} : { source }),
    },
    front.annotations,
  );
}

function object(name: string, spec: CapabilitySpec, annotations: Record<string, string>): Capability {
  const metadata = { name, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) };
  return { apiVersion: API_VERSION, kind: 'Capability', metadata, spec };
}

function checkObject(capability: Capability, { check, reserved }: SkillFolderOptions, report: Report): void {
  const { metadata, spec } = capability;
  const refuse = (rule: string, message: string, fix: string): void =>
    report({ level: 'error', file: '.', rule, message, fix });
  if (reserved.has(spec.tool?.name ?? metadata.name))
    refuse('shadowed-tool', `a built-in tool is named ${printable(metadata.name, 64)}`, 'choose another name');
  for (const { field, message, fix } of check(capability as unknown as Json))
    refuse('field', `${field}: ${message}`, fix);
}
