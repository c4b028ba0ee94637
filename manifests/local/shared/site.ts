import { writeFile } from 'node:fs/promises';
import { createServer as createHttp, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { join } from 'node:path';
import { createCa, issueCertificate } from '../../../src/operator/pki/certificate-issuer.ts';
import { answerGit } from './git-backend.ts';
import { SITE_ADDRESS, SITE_HOST } from './namespace.ts';

/** The hosts that the agents of the samples ask, in their network namespace. */
export interface Site extends AsyncDisposable {
  /** The authority that signed the certificate of the site; nothing else trusts it. */
  certificateFile: string;
}

const SEARCH_PORT = 8081;
export const SEARCH_URL = `http://localhost:${SEARCH_PORT}/search`;
export const REPOSITORY_URL = `https://${SITE_HOST}/tools.git`;
const PAGE_URL = `https://${SITE_HOST}/anvils.html`;
const PAGE = '<title>Weights of anvils</title><p>An anvil weighs 100 kg.</p>';
const HOUR_MS = 3_600_000;

/** A page, a search service in the form of SearXNG that finds it, and a repository of Git. */
export async function startSite(folder: string, { repository }: { repository?: string }): Promise<Site> {
  const now = new Date();
  const ca = await createCa('the samples', now, HOUR_MS);
  const { certificate, key } = await issueCertificate(ca, { names: [SITE_HOST], addresses: [] }, now, HOUR_MS);
  const certificateFile = join(folder, 'authority.pem');
  await writeFile(certificateFile, ca.certificate);

  const pages = createHttps({ cert: certificate, key }, (request, response) => {
    if (request.url === '/anvils.html') return void response.setHeader('content-type', 'text/html').end(PAGE);
    if (repository === undefined) return void response.writeHead(404).end();
    answerGit({ repository, prefix: '/tools.git' }, request, response).catch(() => response.destroy());
  });
  const search = createHttp((_request, response) => {
    const result = { title: 'Weights', url: PAGE_URL, content: 'How heavy anvils are.' };
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ results: [result] }));
  });
  await listen(pages, 443, SITE_ADDRESS);
  await listen(search, SEARCH_PORT, '127.0.0.1');
  return {
    certificateFile,
    async [Symbol.asyncDispose]() {
      for (const server of [pages, search]) {
        server.closeAllConnections();
        await new Promise((done) => server.close(done));
      }
    },
  };
}

async function listen(server: Pick<Server, 'listen' | 'once'>, port: number, host: string): Promise<void> {
  await new Promise<void>((done, fail) => {
    server.once('error', fail);
    server.listen(port, host, done);
  });
}
