import { mkdirSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { Contract } from './contract';
import { recordExchange } from './exchange';
import type { Exchange } from './exchange';
import { apiDocument, workspaceFile } from './workspace-file';

interface Traffic {
  readonly contract: Contract;
  readonly seen: Map<string, number>;
}

const traffic = new Map<string, Traffic>();
const violations: string[] = [];
let faultsArePermitted = false;

/** Holds everything that a server answers from now on to the committed document of its service; whatever does not fit fails the test
 *  that runs. To be called before the first request.
 *  @param basePath what the service was told to put before every route; the documents are without */
export function watchTraffic(service: string, server: Server, basePath = ''): void {
  const { contract, seen } = trafficOf(service);
  server.prependListener('request', (request, response) => {
    recordExchange(request, response, (exchange) => {
      const verdict = contract.judge(withoutBase(exchange, basePath));
      const key = verdict.seen ?? 'no operation';
      seen.set(key, (seen.get(key) ?? 0) + 1);
      const { method, target, status, body } = exchange;
      if (status === 500 && !faultsArePermitted)
        violations.push(`${method} ${target} → 500: a fault\n    ${body}`);
      for (const violation of verdict.violations)
        violations.push(`${method} ${target} → ${String(status)}: ${violation}\n    ${body.slice(0, 500)}`);
    });
  });
}

/** For a test that breaks what a service stands on: until it ends, 500 is an answer like any other. */
export function permitFaults(): void {
  faultsArePermitted = true;
}

/** What did not fit since this was asked last. */
export function takeViolations(): string[] {
  faultsArePermitted = false;
  return violations.splice(0);
}

/** Leaves what this test file saw where the end of the run adds it up. */
export function writeSeenAnswers(testFile: string): void {
  for (const [service, { seen }] of traffic) {
    const folder = workspaceFile('test-results', 'api-traffic', service);
    mkdirSync(folder, { recursive: true });
    const name = testFile.replace(/[^\w.-]+/g, '_');
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(Object.fromEntries(seen)));
  }
}

function trafficOf(service: string): Traffic {
  const known = traffic.get(service);
  if (known !== undefined) return known;
  const fresh = { contract: new Contract(apiDocument(service)), seen: new Map<string, number>() };
  traffic.set(service, fresh);
  return fresh;
}

function withoutBase(exchange: Exchange, basePath: string): Exchange {
  const { target } = exchange;
  if (basePath === '' || /^\/(health|docs|openapi\.json)/i.test(target)) return exchange;
  // Outside its base path a service has nothing, whatever the document calls the path.
  const relative = target.startsWith(basePath) ? target.slice(basePath.length) : `/nothing${target}`;
  return { ...exchange, target: relative };
}
