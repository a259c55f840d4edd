import { OpenApi, conventions } from '@platform/open-api';
import {
  REJECTIONS,
  REJECTION_STATUS,
  TOKEN_FLOWS,
  TokenRejectionReason,
} from './rejections/token-rejection';
import type { RejectionStage, TokenFlow } from './rejections/token-rejection';

/** Column titles for the flows: the last segment of their paths. */
const TITLES: Readonly<Record<TokenFlow, string>> = {
  refresh: 'refresh',
  password: 'user',
  trust: 'trust',
  'trust-simple': 'trust-simple',
  bearer: 'bearer',
  openid: 'openId',
  code: 'code',
  windows: 'winauth',
};

/** The table's columns. Flows with the same statuses share one. */
const COLUMNS = [...new Set(Object.values(REJECTION_STATUS))].map((statuses) => ({
  title: TOKEN_FLOWS.filter((flow) => REJECTION_STATUS[flow] === statuses)
    .map((flow) => TITLES[flow])
    .join(', '),
  statuses,
}));

/** Renders the reason → status table as Markdown. */
function rejectionTable(): string {
  const rows = [
    ['reason', ...COLUMNS.map(({ title }) => title)],
    ['---', ...COLUMNS.map(() => '---')],
    ['0 Successful', ...COLUMNS.map(() => '200')],
    ...REJECTIONS.map((reason) => [
      `${String(reason)} ${TokenRejectionReason[reason]}`,
      ...COLUMNS.map(({ statuses }) => cell(statuses[reason])),
    ]),
  ];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function cell(status: number | Record<RejectionStage, number> | null): string {
  if (status === null) return '';
  if (typeof status === 'number') return String(status);
  const { proof, resolution } = status;
  return `${String(proof)} if the proof is wrong; ${String(resolution)} if only the user or persona cannot be resolved`;
}

const DESCRIPTION = `Issues, exchanges and revokes the platform's access tokens, and answers authorization queries.

## Getting a token

On a development platform (\`npm start\`), where every user has the password \`Demo-Passw0rd!\`:

\`\`\`sh
curl -sS http://127.0.0.1:3001/auth/token/user -H 'Content-Type: application/json' -H 'X-Application-Key: demo-backend' \\
  -d '{"user":"ivy.internal","password":"Demo-Passw0rd!"}'
\`\`\`

Send the \`accessToken\` as \`Authorization: Bearer <ACCESS_TOKEN>\`. It lives for 24 hours. A \`refreshToken\` lives for 365 days, works once,
and is issued only to applications that are permitted to have one. Services and backends use a trust flow instead of a password.

## Responses of the token endpoints

Every response is a **TokenResponse**, even if the request body is not JSON. Only an outage (503) is a problem document. The statuses of each rejection reason:

${rejectionTable()}

If a rate limit is exceeded, the response is 429 with \`Retry-After\` and reason 7.

Personas are bits that add up: 1 InternalPartner, 2 Customer, 4 ServiceProvider, 8 Resident, 16 Owner.

${conventions(', except the rejections of the token endpoints')}`;

/** The introduction and tags of the API document. */
export const API_DOCS = new OpenApi({
  description: DESCRIPTION,
  developmentUrl: 'http://127.0.0.1:3001',
  tags: [
    { name: 'Tokens', description: 'One endpoint for each way to sign in. No access token required.' },
    {
      name: 'Obsolete token endpoints',
      description: 'Deprecated endpoints. They stay available; a `Link` header names the successor.',
    },
    { name: 'Sessions', description: 'List and end sessions that can be refreshed.' },
    { name: 'Revocations', description: 'List and set revocations.' },
    { name: 'Authorization queries', description: 'Members of groups, and users’ access to access points.' },
    {
      name: 'Identity and keys',
      description: 'The identity behind a token, and the public keys that verify tokens.',
    },
    { name: 'Diagnostics', description: 'Liveness and version of the service.' },
    { name: 'Business units', description: 'A deprecated proxy. Call the customers service instead.' },
  ],
});
