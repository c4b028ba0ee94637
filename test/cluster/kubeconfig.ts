import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ApiClient, apiClient } from './api-client.ts';

/** Writes `<name>.kubeconfig` for an identity of the folder's `pki` and returns its path. */
export async function writeKubeconfig(folder: string, url: string, name: string): Promise<string> {
  const file = join(folder, `${name}.kubeconfig`);
  const pki = join(folder, 'pki');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority': join(pki, 'ca.crt') } }],
    users: [{ name, user: { 'client-certificate': join(pki, `${name}.crt`), 'client-key': join(pki, `${name}.key`) } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: name } }],
    'current-context': 'test',
  };
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

/** A client that authenticates as an identity of the folder's `pki`. */
export async function clientAs(folder: string, url: string, name: string): Promise<ApiClient> {
  const pem = (file: string) => readFile(join(folder, 'pki', file), 'utf8');
  const [ca, cert, key] = await Promise.all([pem('ca.crt'), pem(`${name}.crt`), pem(`${name}.key`)]);
  return apiClient(url, { ca, cert, key });
}

/** Writes `<name>.kubeconfig` that authenticates with a token, e.g. of a ServiceAccount, and returns its path. `ca` is PEM. */
export async function writeTokenKubeconfig(
  folder: string,
  { url, ca }: { readonly url: string; readonly ca: string },
  user: { readonly name: string; readonly token: string },
): Promise<string> {
  const file = join(folder, `${user.name}.kubeconfig`);
  const cluster = { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: user.name, user: { token: user.token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: user.name } }],
    'current-context': 'test',
  };
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
