import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TEST_NAME_SERVER } from '../../../cluster/node/config.ts';
import { writePki } from '../../../cluster/pki.ts';
import { publishedFolders } from '../../../support/mcp/published-servers.ts';
import { BareRepository } from '../../../support/gitops/bare-repository.ts';
import { jsonLines } from '../../../support/json-lines.ts';
import { pollValue } from '../../../support/poll.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../installed-cluster.ts';
import { type InternetLine, METADATA_ADDRESS, PUBLIC_ADDRESS, REPOSITORY_TOKEN, SERVICE_TOKEN } from './addresses.ts';

/** `egress.caBundle` of the chart names it. */
const AUTHORITY = 'internet';
const PROGRAM = fileURLToPath(new URL('main.ts', import.meta.url));

export interface Internet extends AsyncDisposable {
  /** What happened at the addresses so far. */
  lines(): Promise<InternetLine[]>;
  /** What `REPOSITORY_URL` names. */
  readonly repository: BareRepository;
  /** What `PRIVATE_REPOSITORY_URL` names. */
  readonly privateRepository: BareRepository;
}

/** Starts the hosts that agents may reach, before the chart is installed. They end with the node, the repository when it is disposed. */
export async function startInternet(cluster: InstalledCluster): Promise<Internet> {
  const folder = join(dirname(cluster.node.kubeconfig), 'internet');
  const [lines, file] = [join(folder, 'lines'), (name: string) => join(folder, name)];
  await mkdir(folder);
  await appendFile(lines, '');
  const alternativeNames = `DNS:*.example.com,IP:${PUBLIC_ADDRESS}`;
  await writePki(folder, [{ name: 'hosts', subject: '/CN=hosts', alternativeNames }]);
  for (const address of [PUBLIC_ADDRESS, METADATA_ADDRESS, TEST_NAME_SERVER]) {
    await cluster.node.onNode('ip', 'address', 'replace', `${address}/32`, 'dev', 'lo');
  }
  const [repository, privateRepository] = await Promise.all([
    BareRepository.create({ 'README.md': 'Tools.\n', 'src/one.txt': 'one\n' }),
    BareRepository.create({ 'README.md': 'Private.\n' }),
  ]);
  const run = [
    PROGRAM,
    TEST_NAME_SERVER,
    lines,
    file('hosts.crt'),
    file('hosts.key'),
    repository.folder,
    privateRepository.folder,
    (await publishedFolders()).python,
  ];
  let ended: Error | undefined;
  cluster.node.onNode(process.execPath, ...run).catch((cause: unknown) => {
    ended = new Error('the hosts of the internet ended', { cause });
  });
  const metadata = { name: AUTHORITY, namespace: RELEASE_NAMESPACE };
  await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: RELEASE_NAMESPACE } });
  const data = { 'ca.crt': await readFile(file('ca.crt'), 'utf8') };
  await cluster.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
  // `gateway.connections` of the chart names it.
  const secret = { name: 'internet-credentials', namespace: RELEASE_NAMESPACE };
  const stringData = { repository: REPOSITORY_TOKEN, services: SERVICE_TOKEN };
  await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata: secret, stringData });
  await pollValue(
    'the hosts of the internet',
    async () => {
      if (ended !== undefined) throw ended;
      return (await cluster.node.onNode('ss', '-Hlnt', 'src', `${PUBLIC_ADDRESS}:443`)).trim();
    },
    (listening) => listening !== '',
  );
  return {
    lines: async () => jsonLines<InternetLine>(await readFile(lines, 'utf8')),
    repository,
    privateRepository,
    async [Symbol.asyncDispose]() {
      await Promise.all([repository, privateRepository].map((one) => one[Symbol.asyncDispose]()));
    },
  };
}
