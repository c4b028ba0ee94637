import type { ResourceType } from '../../../kube/client/kube-client.ts';
import { apiVersionOf, resourceType } from '../../../kube/client/resource-path.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, type JsonObject, textAt } from '../../../lib/json.ts';
import { type Cluster, toTemperError, openCluster } from '../cluster.ts';
import { CLUSTER_KINDS, clusterKind } from '../cluster-kinds.ts';
import { GatewayUserClient } from '../gateway-user-client.ts';
import type { ClusterOptions } from '../options.ts';
import { readSessionTools } from '../session-tools.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { toJsonText, toYamlText } from '../../objects/data-format.ts';
import type { ObjectFormat } from '../../objects/output-formats.ts';
import { describeEvents, describeObject } from '../../objects/sections.ts';
import { oneTarget } from '../../objects/targets.ts';
import { formatAge } from '../../table.ts';
import { stripManagedFields } from '../listing.ts';
import { requestReview } from '../decisions/request-review.ts';

export interface ClusterDescribeOptions extends ClusterOptions {
  /** `KIND NAME` or `KIND/NAME`. */
  targets: readonly string[];
  output: ObjectFormat;
}

type FoundObject = KubeObject & JsonObject;

const EVENTS = resourceType('v1', 'events', 'Event');
const MAX_EVENTS = 20;

/** Prints one object in sections with its conditions and events, or both whole as JSON or YAML. */
export async function clusterDescribe(options: ClusterDescribeOptions, io: CliIo): Promise<number> {
  const { kind, name } = oneTarget(options.targets, CLUSTER_KINDS);
  const type = clusterKind(kind);
  await using cluster = await openCluster(options, io);
  const found = await getObject(cluster, type, name, io);
  if (found === undefined) {
    const tools = type.kind === 'EmergentTool' ? await sessionToolsOf(cluster, name, io) : [];
    if (tools.length === 0) throw notFound(cluster, type, name);
    return printSessionTools(tools, options.output, io);
  }
  const events = await eventsOf(cluster, type, found, io);
  const object = { apiVersion: apiVersionOf(type), kind: type.kind, ...stripManagedFields(found) };
  if (options.output === 'json') io.out(toJsonText({ object, events: events ?? [] }));
  else if (options.output === 'yaml') io.out(toYamlText({ object, events: events ?? [] }));
  else {
    const review = type.kind === 'ApprovalRequest' ? await requestReview(cluster, found, io) : undefined;
    const shown = review === undefined ? '' : `Review:\n${review}`;
    io.out(`${describeObject(object, name, new Date(), [])}${shown}${eventText(events)}`);
  }
  return EXIT.ok;
}

function eventText(events: readonly Json[] | undefined): string {
  if (events === undefined) return 'Events:       <you may not read events>\n';
  const now = new Date();
  return describeEvents(
    events.map((event) => ({
      seen: formatAge(lastSeen(event), now),
      type: textAt(event, ['type']),
      reason: textAt(event, ['reason']),
      message: textAt(event, ['message']),
    })),
  );
}

async function getObject(
  cluster: Cluster,
  type: ResourceType,
  name: string,
  io: CliIo,
): Promise<FoundObject | undefined> {
  const { kube, namespace } = cluster;
  return kube.get<FoundObject>(type, { namespace, name }, io.signal).catch((error: unknown) => {
    throw toTemperError(error, `reading ${type.plural} ${name}`, cluster);
  });
}

function notFound({ location }: Cluster, type: ResourceType, name: string): TemperError {
  const hint = type.kind === 'EmergentTool' ? ', and those of sessions with temper top tools' : '';
  return new TemperError(
    'TEMPER_NOT_FOUND',
    `no ${type.plural} "${name}" in ${location}; list them with temper get ${type.plural}${hint}`,
  );
}

/** Tools of open sessions with this name: they are no objects, and the gateway reports their promotion. */
async function sessionToolsOf(cluster: Cluster, name: string, io: CliIo): Promise<JsonObject[]> {
  const gateway = new GatewayUserClient(cluster, io.signal);
  const tools = await readSessionTools(cluster, gateway, undefined, io.signal);
  return tools.filter((tool) => tool.name === name);
}

function printSessionTools(tools: readonly JsonObject[], output: ObjectFormat, io: CliIo): number {
  if (output === 'json') io.out(toJsonText({ tools: [...tools] }));
  else if (output === 'yaml') io.out(toYamlText({ tools: [...tools] }));
  else
    io.out(
      tools
        .map((tool) => describeObject({ ...tool, tier: 'Session' }, textAt(tool, ['name']), new Date(), []))
        .join('\n'),
    );
  return EXIT.ok;
}

/** The events of the object, newest last; undefined when the user may not read events. */
async function eventsOf(
  cluster: Cluster,
  type: ResourceType,
  found: FoundObject,
  io: CliIo,
): Promise<Json[] | undefined> {
  const { namespace, kube } = cluster;
  const fieldSelector = `involvedObject.kind=${type.kind},involvedObject.name=${found.metadata.name}`;
  try {
    const events = await kube.list<FoundObject>(EVENTS, { namespace, fieldSelector }, io.signal);
    const ofThis = events.filter((event) => textAt(event, ['involvedObject', 'uid']) === found.metadata.uid);
    ofThis.sort((one, other) => (lastSeen(one) ?? '').localeCompare(lastSeen(other) ?? ''));
    return ofThis.slice(-MAX_EVENTS).map(stripManagedFields);
  } catch (error) {
    const shown = toTemperError(error, 'reading events', cluster);
    if (shown instanceof TemperError && shown.code === 'TEMPER_CLUSTER_FORBIDDEN') return undefined;
    throw shown;
  }
}

function lastSeen(event: Json): string | undefined {
  const times = [['series', 'lastObservedTime'], ['lastTimestamp'], ['eventTime'], ['metadata', 'creationTimestamp']];
  return times.map((path) => textAt(event, path)).find((text) => text !== '');
}
