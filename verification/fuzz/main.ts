/** `npm run fuzz`: sends hostile requests and checks the responses against the OpenAPI documents. */
import { randomInt } from 'node:crypto';
import { runMain } from '#platform/command-line.ts';
import { cpuMsOf } from '#platform/proc.ts';
import { SecretScanner } from '#platform/secret-scan.ts';
import type { ServerAddresses, TestPlatform } from '#platform/test-platform.ts';
import { SERVICE_NAMES } from '#platform/programs.ts';
import { allowedMs, costTable, excessive } from './cost-judge.ts';
import { measureCosts } from './cost.ts';
import { type Fixtures, prepare } from './fixtures.ts';
import type { FuzzRequest, Outcome } from './http.ts';
import { SECRETS_OF_REQUESTS } from './judge.ts';
import { auditLogs, programOf, secretsOf, testPlatform, Watch } from './platform.ts';
import { type FuzzArguments, Ledger, NOT_NUMBERED, parseFuzzArguments, sendAll } from './run.ts';
import { CANNOT_SUCCEED, judgeSuccesses, nameOf } from './success.ts';
import { excessiveOnWire, measureWire, wireTable } from './wire.ts';

const SHOWN_BYTES = 2_000;
const PROGRESS_MS = 5_000;
/** Number of requests before and after a finding that the suggested command also repeats. */
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

/** Fuzzes a platform. Returns true if there were no findings. */
async function fuzz(platform: TestPlatform, servers: ServerAddresses, args: FuzzArguments): Promise<boolean> {
  const fixtures = await prepare(platform, args.services);
  const secrets = secretsOf(platform, servers);
  const ledger = new Ledger(({ where, what, firstNumber }) =>
    console.log(`  ✘ ${firstNumber}: ${where}: ${what}`),
  );
  const watch = new Watch(platform);
  const startedAtMs = performance.now();
  let isOver = watch.sample();
  const timer = setInterval(() => {
    isOver = watch.sample();
    const perSecond = (ledger.sent / (performance.now() - startedAtMs)) * 1_000;
    console.log(
      `  ${ledger.sent} sent, ${perSecond.toFixed(0)}/s, ${ledger.findings.length} findings; ${watch.memory()}`,
    );
  }, PROGRESS_MS);
  const observe = args.only === null ? {} : { observe: show };
  const configured = new SecretScanner(secrets);
  await sendAll({ args, fixtures, configured, ledger, isOver: () => isOver, ...observe });
  if (args.only === null) {
    await reportCosts(platform, fixtures, ledger);
    await reportWire(platform, fixtures, args, ledger);
  }
  clearInterval(timer);
  watch.sample();
  const seconds = (performance.now() - startedAtMs) / 1_000;
  for (const what of watch.findings())
    ledger.add({ what, where: 'processes', firstNumber: NOT_NUMBERED, trick: '' });
  const { lines, findings } = auditLogs(platform, new Map([...secrets, ...SECRETS_OF_REQUESTS]));
  for (const what of findings) ledger.add({ what, where: 'logs', firstNumber: NOT_NUMBERED, trick: '' });
  const operations = fixtures.operations.map(nameOf);
  if (args.only === null)
    for (const [where, what] of judgeSuccesses(operations, ledger.succeeded))
      ledger.add({ what, where, firstNumber: NOT_NUMBERED, trick: '' });
  report(ledger, args, operations);
  console.log(
    `${ledger.sent} requests in ${seconds.toFixed(0)} s, ${lines} log lines checked; peak memory ${watch.memory()}`,
  );
  return ledger.findings.length === 0;
}

async function reportCosts(platform: TestPlatform, fixtures: Fixtures, ledger: Ledger): Promise<void> {
  const { costs, parseMs } = await measureCosts(platform, fixtures);
  console.log(`\n${costTable(costs, parseMs)}`);
  for (const cost of excessive(costs, parseMs)) {
    const { request, cpuMs } = cost;
    ledger.add({
      what: `${request.trick}: ${cpuMs.toFixed(1)} ms of processor time for one request, ${allowedMs(cost, parseMs).toFixed(1)} ms are allowed`,
      where: `${request.service} ${request.method} ${request.target.split('?')[0] ?? ''} (cost)`,
      firstNumber: NOT_NUMBERED,
      trick: '',
    });
  }
}

/** Measures the cost of bytes that are sent in expensive ways, for one service after the other. */
async function reportWire(
  platform: TestPlatform,
  fixtures: Fixtures,
  { services }: FuzzArguments,
  ledger: Ledger,
): Promise<void> {
  for (const service of SERVICE_NAMES.filter((name) => services.includes(name))) {
    const port = Number(fixtures.hosts[service].split(':')[1]);
    const { pid } = programOf(platform, service);
    const costs = await measureWire(port, () => cpuMsOf(pid));
    console.log(`\n${wireTable(service, costs)}`);
    for (const { name, perByte } of excessiveOnWire(costs))
      ledger.add({
        what: `${perByte.toFixed(2)} µs of processor time per byte`,
        where: `${service}: ${name} (wire)`,
        firstNumber: NOT_NUMBERED,
        trick: '',
      });
  }
}

function report(ledger: Ledger, args: FuzzArguments, operations: readonly string[]): void {
  console.log(`\n${ledger.table()}\n`);
  const never = operations.filter((operation) => !ledger.succeeded.has(operation));
  console.log(
    `${operations.length - never.length} of ${operations.length} operations succeeded at least once`,
  );
  for (const operation of never)
    console.log(
      `  never: ${operation}${CANNOT_SUCCEED.has(operation) ? `: ${CANNOT_SUCCEED.get(operation)}` : ''}`,
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

/** The flag for the chosen services, because the requests of a seed depend on them. */
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
