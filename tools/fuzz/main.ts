/** `npm run fuzz`: sends the platform hostile requests and holds its responses to the OpenAPI documents. */
import { randomInt } from 'node:crypto';
import { runMain } from '#platform/command-line.ts';
import type { ServerAddresses, TestPlatform } from '#platform/test-platform.ts';
import { costTable, excessive, measureCosts, measureParse } from './cost.ts';
import { type Fixtures, prepare } from './fixtures.ts';
import type { FuzzRequest, Outcome } from './http.ts';
import { type Secrets, secretsInLog } from './judge.ts';
import { readLogs, secretsOf, testPlatform, Watch } from './platform.ts';
import { type FuzzArguments, Ledger, parseFuzzArguments, sendAll } from './run.ts';

const SHOWN_BYTES = 2_000;
const PROGRESS_MS = 5_000;
/** Requests in flight beside a finding, and those just before it. */
const NEIGHBOURS = 48;

async function main(): Promise<void> {
  const args = parseFuzzArguments(process.argv.slice(2), randomInt(1_000_000));
  console.log(`▸ seed ${args.seed}, ${args.only?.length ?? args.requests} requests`);
  const variables = {
    OPENAPI_ENABLED: 'true',
    LOG_LEVEL: args.logLevel,
    REQUEST_TIMEOUT_MS: '10000',
    // A schedule that fires every minute has 43,200 instances in the default 30 days.
    GENERATION_HORIZON_DAYS: '1',
  };
  await testPlatform({ build: args.build, variables }, (platform, servers) => fuzz(platform, servers, args));
}

/** True when nothing was found. */
async function fuzz(platform: TestPlatform, servers: ServerAddresses, args: FuzzArguments): Promise<boolean> {
  const fixtures = await prepare(platform, args.services);
  const secrets: Secrets = { configured: secretsOf(platform, servers) };
  const ledger = new Ledger(({ where, what, firstNumber }) =>
    console.log(`  ✘ ${firstNumber}: ${where}: ${what}`),
  );
  const watch = new Watch(platform);
  const startedAtMs = performance.now();
  let isOver = watch.look();
  const timer = setInterval(() => {
    isOver = watch.look();
    const perSecond = (ledger.sent / (performance.now() - startedAtMs)) * 1_000;
    console.log(
      `  ${ledger.sent} sent, ${perSecond.toFixed(0)}/s, ${ledger.findings.length} findings; ${watch.memory()}`,
    );
  }, PROGRESS_MS);
  const observe = args.only === null ? {} : { observe: show };
  await sendAll({ args, fixtures, secrets, ledger, isOver: () => isOver, ...observe });
  if (args.only === null) await reportCosts(platform, fixtures, ledger);
  clearInterval(timer);
  watch.look();
  const seconds = (performance.now() - startedAtMs) / 1_000;
  for (const what of watch.complaints()) ledger.add({ what, where: 'processes', firstNumber: -1, trick: '' });
  const { lines, complaints } = readLogs(platform, (line) => secretsInLog(line, secrets));
  for (const what of complaints) ledger.add({ what, where: 'logs', firstNumber: -1, trick: '' });
  report(
    ledger,
    args,
    fixtures.operations.map(({ service, id }) => `${service} ${id}`),
  );
  console.log(
    `${ledger.sent} requests in ${seconds.toFixed(0)} s, ${lines} log lines read; memory at most ${watch.memory()}`,
  );
  return ledger.findings.length === 0;
}

async function reportCosts(platform: TestPlatform, fixtures: Fixtures, ledger: Ledger): Promise<void> {
  const costs = await measureCosts(platform, fixtures);
  const parseMs = measureParse();
  console.log(`\n${costTable(costs)}\n  JSON.parse of the largest body: ${parseMs.toFixed(1)} ms`);
  for (const { request, cpuMs } of excessive(costs, parseMs))
    ledger.add({
      what: `${request.trick}: ${cpuMs.toFixed(0)} ms of processor time for one request, ${(cpuMs / parseMs).toFixed(1)} parses of the largest body`,
      where: `${request.service} ${request.method} ${request.target.split('?')[0] ?? ''} (cost)`,
      firstNumber: -1,
      trick: '',
    });
}

function report(ledger: Ledger, args: FuzzArguments, operations: readonly string[]): void {
  console.log(`\n${ledger.table()}\n`);
  const never = operations.filter((operation) => !ledger.succeeded.has(operation));
  console.log(
    `${operations.length - never.length} of ${operations.length} operations succeeded at least once${never.length === 0 ? '' : `; not: ${never.join(', ')}`}`,
  );
  for (const { what, where, count, firstNumber, trick } of ledger.findings) {
    console.log(`✘ ${where}: ${what}${trick === '' ? '' : ` [${trick}]`} (${count} ×)`);
    if (firstNumber >= 0)
      console.log(
        `    npm run fuzz -- --seed ${args.seed} --only ${firstNumber} --neighbours ${NEIGHBOURS}${serviceFlag(args)}`,
      );
  }
  console.log(
    ledger.findings.length === 0
      ? '✔ nothing found'
      : `✘ ${ledger.findings.length} findings, seed ${args.seed}`,
  );
}

/** The chosen services decide which requests a seed gives. */
function serviceFlag({ services }: FuzzArguments): string {
  return services.length === 1 ? ` --service ${services[0] ?? ''}` : '';
}

function show(request: FuzzRequest, bytes: Buffer, outcome: Outcome): void {
  console.log(
    `\n${request.service}, ${request.kind}${request.trick === '' ? '' : ` (${request.trick})`}, ${bytes.length} bytes:`,
  );
  console.log(JSON.stringify(bytes.toString('latin1', 0, SHOWN_BYTES)));
  if (outcome.kind !== 'responded') console.log(outcome);
  else
    console.log(
      `→ ${outcome.response.status} ${JSON.stringify(outcome.response.headers)}\n${outcome.response.body.slice(0, SHOWN_BYTES)}`,
    );
}

runMain(main);
