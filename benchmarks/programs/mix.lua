-- Sorting, strings, tables and calls: what an interpreter is asked for. `lua mix.lua ROUNDS`

local function calls(n)
  if n < 2 then return n end
  return calls(n - 1) + calls(n - 2)
end

local function sorted(seed, size)
  local numbers = {}
  for i = 1, size do
    seed = (seed * 1103515245 + 12345) % 2147483648
    numbers[i] = seed
  end
  table.sort(numbers, function(a, b) return a % 1000 < b % 1000 end)
  return numbers[size // 2]
end

local function words(size)
  local parts = {}
  for i = 1, size do parts[#parts + 1] = ("%d-%x"):format(i, i * 37) end
  local text, found = table.concat(parts, " "), 0
  for decimal, hex in text:gmatch("(%d+)%-(%x+)") do found = found + #decimal * #hex end
  return found + #text:gsub("%d", "#"):upper()
end

local Account = {}
Account.__index = Account
function Account.new(owner) return setmetatable({owner = owner, total = 0}, Account) end
function Account:add(amount)
  self.total = self.total + amount
  return self
end

local function objects(size)
  local accounts, sum = {}, 0
  for i = 1, size do accounts["a" .. i % 97] = Account.new(i):add(i % 13) end
  for _, account in pairs(accounts) do sum = sum + account:add(1).total end
  return sum
end

local result = 0
for round = 1, tonumber(arg[1]) do
  result = result + calls(15) + sorted(round, 2000) + words(800) + objects(1500)
end
print(result)
