export interface WebhookAddress {
  readonly namespace: string;
  readonly agent: string;
  readonly trigger: string;
  /** Where requests reach the webhooks of the release: `https://HOST`. */
  readonly url: string;
}

/** How to create the key of a webhook, and a request that is signed with it. The members are names, so that they need no quotes in a shell. */
export function webhookHelp(address: WebhookAddress): string {
  const { namespace, agent, trigger } = address;
  return `# The key of the webhook. To change it, write the new key into the first line and remove the old one later.
kubectl create secret generic temper-webhooks -n ${namespace} --from-literal=${agent}.${trigger}=whsec_$(openssl rand -base64 32)

# A signed request.
${signedRequest(address)}`;
}

/** A script for bash with kubectl, openssl and curl. */
export function signedRequest(address: WebhookAddress): string {
  const { namespace, agent, trigger } = address;
  const template = `{{index .data "${agent}.${trigger}"}}`;
  return requestScript(
    `kubectl get secret temper-webhooks -n ${namespace} -o 'go-template=${template}' | base64 -d | head -n 1`,
    address,
  );
}

/** The same for `temper run`: the key is in a file of the user, whose path is quoted for a shell. */
export function localWebhookHelp(address: WebhookAddress, keysFile: string): string {
  const { namespace, agent, trigger, url } = address;
  const name = `${namespace}/${agent}.${trigger}`;
  return `# The key of the webhook. Only the user may read the file.
file=${quoted(keysFile)}
(umask 077; mkdir -p "$(dirname "$file")"; echo "${name}: whsec_$(openssl rand -base64 32)" >> "$file")

# Receive requests, in another terminal: temper run -f FILE --serve --webhooks ${new URL(url).port}

# A signed request.
${requestScript(`sed -n 's#^${name}: ##p' "$file"`, address)}`;
}

/** `keyCommand` prints the key. */
function requestScript(keyCommand: string, { namespace, agent, trigger, url }: WebhookAddress): string {
  return `body='{"order":"A-7"}'
id=msg_$(openssl rand -hex 12)
time=$(date +%s)
key=$(${keyCommand})
hex=$(printf %s "\${key#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')
signature=$(printf %s "$id.$time.$body" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$hex -binary | base64)
curl --fail-with-body -H 'content-type: application/json' -H "webhook-id: $id" -H "webhook-timestamp: $time" \\
  -H "webhook-signature: v1,$signature" --data-raw "$body" ${url}/v1/webhooks/${namespace}/${agent}/${trigger}
`;
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}
