import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { INSTANCE_TRANSITIONS } from '../src/instances/instance.entity';
import { SCHEDULE_TRANSITIONS } from '../src/stored-schedules/schedule-states';

const PAGE = readFileSync(resolve(__dirname, '../../../docs/task-states.md'), 'utf8');

/** Returns each arrow under the heading as `from command to`, without the initial state. */
function transitionsInDiagram(heading: string): string[] {
  const diagram = /```mermaid\n(.*?)```/s.exec(PAGE.slice(PAGE.indexOf(`\n## ${heading}\n`)))?.[1] ?? '';
  const arrows = [...diagram.matchAll(/^ {2}(\w+) --> (\w+): (.+)$/gm)];
  return arrows
    .flatMap(([, from = '', to = '', commands = '']) =>
      commands.split(', ').map((each) => `${from} ${each} ${to}`),
    )
    .sort();
}

const transitionsInCode = (
  transitions: Readonly<Record<string, Readonly<Record<string, string | undefined>>>>,
): string[] =>
  Object.entries(transitions)
    .flatMap(([from, commands]) =>
      Object.entries(commands).map(([command, to]) => `${from} ${command} ${String(to)}`),
    )
    .sort();

describe('the diagrams of docs/task-states.md', () => {
  it.each([
    ['Schedule', SCHEDULE_TRANSITIONS],
    ['Instance', INSTANCE_TRANSITIONS],
  ])('show every transition of a %s, and no other', (heading, transitions) => {
    expect(transitionsInDiagram(heading)).toEqual(transitionsInCode(transitions));
  });
});
