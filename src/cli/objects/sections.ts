import { type Json, isJsonObject, member, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { formatAge, formatCell, table } from '../table.ts';
import { toYamlText } from './data-format.ts';

/** A part of a description after the fields of the object, such as the evidence of a tool. */
export interface ExtraSection {
  readonly title: string;
  readonly value: Json;
}

const MAX_LINE = 4_000;
const LABEL_WIDTH = 14;

/**
 * Describes an object in sections as `kubectl describe` does: name, labels, spec, status, conditions. Each further member has its
 * section too, so nothing of the object is left out. `fallbackName` is for records without metadata.
 */
export function describeObject(object: Json, fallbackName: string, now: Date, extra: readonly ExtraSection[]): string {
  const metadata = member(object, 'metadata');
  const conditions = conditionsOf(object);
  const sections = membersOf(object).flatMap(([key, value]) => {
    if (['apiVersion', 'kind', 'metadata'].includes(key) && metadata !== undefined) return [];
    return [section(titleOf(key), key === 'status' ? withoutConditions(value) : value)];
  });
  return [
    header(object, metadata, fallbackName, now),
    ...sections,
    conditions.length === 0 ? '' : `Conditions:\n${indent(conditionTable(conditions, now))}`,
    ...extra.map(({ title, value }) => section(title, value)),
  ].join('');
}

/** The events of an object; `<none>` shows that they were read. */
export function describeEvents(
  events: readonly { seen: string; type: string; reason: string; message: string }[],
): string {
  if (events.length === 0) return 'Events:       <none>\n';
  const rows = events.map(({ seen, type, reason, message }) => [type, reason, seen, message]);
  return `Events:\n${indent(table(['TYPE', 'REASON', 'AGE', 'MESSAGE'], rows, MAX_LINE))}`;
}

function header(object: Json, metadata: Json | undefined, fallbackName: string, now: Date): string {
  if (metadata === undefined) return field('Name', fallbackName);
  const created = textAt(metadata, ['creationTimestamp']);
  return [
    field('Name', textAt(metadata, ['name'], fallbackName)),
    field('Namespace', textAt(metadata, ['namespace'], 'default')),
    mapField('Labels', member(metadata, 'labels'), '='),
    mapField('Annotations', member(metadata, 'annotations'), ': '),
    field('API Version', textAt(object, ['apiVersion'], '<none>')),
    field('Kind', textAt(object, ['kind'], '<none>')),
    created === '' ? '' : field('Created', `${created} (${formatAge(created, now)} ago)`),
    ownersField(member(metadata, 'ownerReferences')),
    textAt(metadata, ['deletionTimestamp']) === '' ? '' : field('Deleting', textAt(metadata, ['deletionTimestamp'])),
  ].join('');
}

function field(label: string, text: string): string {
  return `${labelOf(label)}${printable(text, MAX_LINE)}\n`;
}

/** The label of a field, padded; a space follows a longer label too. */
function labelOf(label: string): string {
  return `${label}: `.padEnd(LABEL_WIDTH);
}

/** One entry per line, below each other, as kubectl aligns labels. */
function mapField(label: string, value: Json | undefined, separator: string): string {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  if (entries.length === 0) return field(label, '<none>');
  const lines = entries.map(([key, text]) => printable(`${key}${separator}${formatCell(text)}`, MAX_LINE));
  return `${labelOf(label)}${lines.join(`\n${' '.repeat(LABEL_WIDTH)}`)}\n`;
}

function ownersField(value: Json | undefined): string {
  if (!Array.isArray(value) || value.length === 0) return '';
  const owners = value.map((owner) => `${textAt(owner, ['kind'])}/${textAt(owner, ['name'])}`);
  return field('Owned By', owners.join(', '));
}

function membersOf(object: Json): [string, Json][] {
  return isJsonObject(object) ? Object.entries(object) : [];
}

function section(title: string, value: Json): string {
  if (!isJsonObject(value) && !Array.isArray(value)) return field(title, String(value));
  if (Object.keys(value).length === 0) return '';
  return `${printable(title, 120)}:\n${indent(toYamlText(value))}`;
}

function indent(text: string): string {
  const lines = text.trimEnd().split('\n');
  return lines.map((line) => `  ${line}`.trimEnd()).join('\n') + '\n';
}

/** `lastUsedAt` becomes `Last Used At`, as kubectl titles fields. */
export function titleOf(key: string): string {
  const spaced = key.replace(/[A-Z]/g, (letter) => ` ${letter}`);
  return `${spaced.slice(0, 1).toUpperCase()}${spaced.slice(1)}`;
}

function conditionsOf(object: Json): Json[] {
  const found = member(member(object, 'status'), 'conditions');
  return Array.isArray(found) ? found : [];
}

function withoutConditions(status: Json): Json {
  if (!isJsonObject(status) || !Array.isArray(member(status, 'conditions'))) return status;
  const { conditions: _, ...rest } = status;
  return rest;
}

function conditionTable(conditions: readonly Json[], now: Date): string {
  const rows = conditions.map((condition) => [
    ...['type', 'status', 'reason'].map((key) => textAt(condition, [key])),
    formatAge(textAt(condition, ['lastTransitionTime']), now),
    textAt(condition, ['message']),
  ]);
  return table(['TYPE', 'STATUS', 'REASON', 'AGE', 'MESSAGE'], rows, MAX_LINE);
}
