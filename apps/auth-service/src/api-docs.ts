import { OpenApi, conventions } from '@platform/open-api';
import {
  REJECTIONS,
  REJECTION_STATUS,
  TOKEN_FLOWS,
  TokenRejectionReason,
} from './rejections/token-rejection';
import type { RejectionStage, TokenFlow } from './rejections/token-rejection';

/** How people know the flows: the last words of their paths. */
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

/** Flows that share their statuses share a column. */
const COLUMNS = [...new Set(Object.values(REJECTION_STATUS))].map((statuses) => ({
  title: TOKEN_FLOWS.filter((flow) => REJECTION_STATUS[flow] === statuses)
    .map((flow) => TITLES[flow])
    .join(', '),
  statuses,
}));

/** The reason → status table for people, in Markdown. */
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
  return `${String(proof)} proof wrong; ${String(resolution)} proof right, but the user or persona not resolved`;
}

const DESCRIPTION = `Issues, exchanges and revokes the platform's access tokens, and answers who may do what.

## Getting a token

Against a platform in development (\`npm start\`), whose users all have the password \`Demo-Passw0rd!\`:

\`\`\`sh
curl -sS http://127.0.0.1:3001/auth/token/user -H 'Content-Type: application/json' -H 'X-Application-Key: demo-backend' \\
  -d '{"user":"ivy.internal","password":"Demo-Passw0rd!"}'
\`\`\`

Send the \`accessToken\` as \`Authorization: Bearer <ACCESS_TOKEN>\`. It lives for 24 hours; a \`refreshToken\` lives for 365 days, works once,
and is only for applications that may have one. Services and backends use a trust flow instead of a password.

## What token endpoints answer

Always a **TokenResponse**, a body that is not JSON included. Only outages (503) are problems. Which status goes with which reason:

${rejectionTable()}

Where a rate limit is configured, 429 with \`Retry-After\` and reason 7 says that the request came too soon.

Personas are bits that add up: 1 InternalPartner, 2 Customer, 4 ServiceProvider, 8 Resident, 16 Owner.

${conventions(', but for the refusals of the token endpoints')}`;

/** What the API document says of this service. */
export const API_DOCS = new OpenApi({
  description: DESCRIPTION,
  developmentUrl: 'http://127.0.0.1:3001',
  tags: [
    { name: 'Tokens', description: 'One endpoint for each way to prove who asks. Anonymous.' },
    { name: 'Obsolete token endpoints', description: 'They stay available and name their successors.' },
    { name: 'Sessions', description: 'What has signed in and can be refreshed, and ending it.' },
    { name: 'Revocations', description: 'What has been revoked, and revoking it.' },
    { name: 'Authorization queries', description: 'Who is in a group, and who may pass an access point.' },
    {
      name: 'Identity and keys',
      description: 'Who a token speaks for, and the keys that tokens are checked with.',
    },
    { name: 'Diagnostics', description: 'Whether the service answers, and its version.' },
    { name: 'Business units', description: 'A deprecated proxy: ask the customers service instead.' },
  ],
});
