import { Controller, Get, Module, Post, Query } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Public } from '@platform/access-tokens';
import {
  createServiceApplication,
  loadConfig,
  pageKeyQuery,
  pageSizeQuery,
  serviceConfigShape,
} from '@platform/service-defaults';
import type { ServiceDefinition } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import {
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiTags,
  NeverFails,
  OpenApi,
  PagedQuery,
  previewDocument,
} from '../src';

class ChapterDto extends createZodDto(
  z.object({ text: z.string() }).meta({ id: 'Chapter', description: 'A part.' }),
) {}
class ChaptersQueryDto extends createZodDto(
  z.object({
    about: z.string().optional().meta({ description: 'A word.', example: 'night' }),
    pageKey: pageKeyQuery,
    pageSize: pageSizeQuery,
  }),
) {}
class StoryDto extends createZodDto(z.object({ chapters: z.array(ChapterDto.schema) })) {}

@Controller('stories')
@ApiTags('Story')
@Public()
class StoryController {
  @Get('quick')
  @ApiOperation({ operationId: 'quick', summary: 'Tell it quickly' })
  @ApiOkResponse({ description: 'A story.', type: StoryDto.Output })
  @NeverFails()
  quick(): object {
    return { chapters: [] };
  }

  @Get('chapters')
  @ApiOperation({ operationId: 'chapters', summary: 'List chapters' })
  @PagedQuery()
  @ApiOkResponse({ description: 'Chapters.', type: [ChapterDto.Output] })
  chapters(@Query() _page: ChaptersQueryDto): object[] {
    return [];
  }
}

@Module({ controllers: [StoryController] })
class StoryModule {}

const api = new OpenApi({
  description: 'Tells a story.',
  developmentUrl: 'http://127.0.0.1:3999',
  tags: [{ name: 'Story', description: 'What happens.' }],
});

function definition(rootModule: Type, env: Record<string, string> = {}): ServiceDefinition {
  const config = loadConfig(z.object(serviceConfigShape), {
    NODE_ENV: 'test',
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'silent',
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    ...env,
  });
  return { name: 'stories', title: 'Stories', api, rootModule, config };
}

describe('the routes of an API document', () => {
  let app: NestFastifyApplication;
  let origin: string;
  const start = async (env: Record<string, string> = {}): Promise<void> => {
    app = await createServiceApplication(definition(StoryModule, env));
    await app.listen(0, '127.0.0.1');
    origin = await app.getUrl();
  };
  afterEach(() => app.close());

  it('serves the OpenAPI document and a page that shows it, outside production', async () => {
    await start();
    const document = (await (await fetch(`${origin}/openapi.json`)).json()) as {
      openapi: string;
      paths: object;
    };
    expect(document.openapi).toMatch(/^3\.1/);
    expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(['/stories/quick', '/health/ready']));
    expect(await filesOfPage(`${origin}/docs`)).toEqual(await filesOfPage(`${origin}/docs/`));
    const root = await fetch(`${origin}/`, { redirect: 'manual' });
    expect([root.status, root.headers.get('location')]).toEqual([302, '/docs']);
    await app.close();
    await start({ NODE_ENV: 'production' });
    expect((await fetch(`${origin}/`)).status).toBe(404);
    expect((await fetch(`${origin}/openapi.json`)).status).toBe(404);
    expect((await fetch(`${origin}/docs`)).status).toBe(404);
  });
});

describe('a document', () => {
  it('names schemas by their ids or classes, refers to them, and lets responses have further members', async () => {
    const { components, paths } = await previewDocument(definition(StoryModule));
    expect(Object.keys(components.schemas)).toEqual([
      'Alive',
      'Chapter',
      'Healthy',
      'NotReady',
      'Problem',
      'Story',
    ]);
    expect(components.schemas['Story']).toEqual({
      type: 'object',
      properties: { chapters: { type: 'array', items: { $ref: '#/components/schemas/Chapter' } } },
      required: ['chapters'],
    });
    expect(paths['/stories/chapters']?.['get']?.responses['200']).toMatchObject({
      content: { 'application/json': { schema: { items: { $ref: '#/components/schemas/Chapter' } } } },
    });
  });

  it('describes parameters by their schemas and explicit descriptions', async () => {
    const { paths } = await previewDocument(definition(StoryModule));
    const parameters = paths['/stories/chapters']?.['get']?.parameters ?? [];
    const pageKey: unknown = expect.stringMatching(/^`nextPageKey`/);
    expect(parameters.map(({ name, in: place, required }) => [name, place, required])).toEqual([
      ['about', 'query', false],
      ['pageKey', 'query', false],
      ['pageSize', 'query', false],
    ]);
    expect(parameters).toMatchObject([
      { description: 'A word. For example `night`.', schema: { type: 'string' } },
      { description: pageKey, schema: { type: 'string', minLength: 1, maxLength: 8_192 } },
      { schema: { type: 'integer', minimum: 1, maximum: 1_000, default: 100 } },
    ]);
  });

  it('adds the standard responses, except those that a route never sends', async () => {
    const { paths } = await previewDocument(definition(StoryModule));
    expect(Object.keys(paths['/stories/quick']?.['get']?.responses ?? {})).toEqual(['200']);
    expect(Object.keys(paths['/stories/chapters']?.['get']?.responses ?? {})).toEqual(['200', '500', '503']);
  });

  const operation = ApiOperation({ operationId: 'tell', summary: 'Tell it' });
  const response = ApiOkResponse({ description: 'Told.' });
  const tag = ApiTags('Story');
  const nothing = ApiHeader({ name: 'X-Nothing' });
  const credential = ApiHeader({ name: 'Authorization', description: '`Basic`, say.' });
  const parameter = ApiParam({ name: 'id', description: 'Of a story.' });
  it.each<[string, MethodDecorator[], RegExp]>([
    ['any description', [], /TellController.tell: the route is not documented: no operationId, no summary/],
    ['a response', [operation, tag], /no description of its response 201/],
    ['a tag', [operation, response], /not exactly one tag/],
    ['an operationId', [ApiOperation({ summary: 'Tell it' }), tag, response], /no operationId/],
    ['the description of a parameter', [operation, tag, response, nothing], /X-Nothing/],
    ['the parameter that is described', [operation, tag, response, parameter], /descriptions: id/],
    ['a security scheme for its Authorization', [operation, tag, response, credential], /Authorization/],
  ])('is not made for a route without %s', async (_, decorators, message) => {
    class TellController {
      tell(): void {
        // Never called.
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(TellController.prototype, 'tell') ?? {};
    for (const decorate of [...decorators, Post()]) decorate(TellController.prototype, 'tell', descriptor);
    Controller()(TellController);
    class TellModule {}
    Module({ controllers: [TellController] })(TellModule);
    await expect(previewDocument(definition(TellModule))).rejects.toThrow(message);
  });
});
/** Returns the files that a page loads. Checks that each is served by the service and exists. */
async function filesOfPage(url: string): Promise<string[]> {
  const page = await fetch(url);
  expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/);
  const html = await page.text();
  expect(html).not.toMatch(/<script>|<style>|https?:/);
  const found = [...html.matchAll(/(?:src|href|data-document)="(?!data:)([^"]+)"/g)];
  const files = found.map(([, reference]) => new URL(String(reference), url).href).sort();
  for (const file of files) expect((await fetch(file)).status).toBe(200);
  expect(files).toHaveLength(5);
  return files;
}
