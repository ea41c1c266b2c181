export interface ListQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** Every item of a list, asking for one page after the other as they are taken. */
export async function* everyItem<T>(
  page: (
    cursor: string | undefined,
  ) => Promise<{ readonly items: readonly T[]; readonly next_cursor: string | null }>,
  first?: string,
): AsyncGenerator<T, void, void> {
  let cursor = first
  do {
    const { items, next_cursor: next } = await page(cursor)
    yield* items
    cursor = next ?? undefined
  } while (cursor !== undefined)
}
